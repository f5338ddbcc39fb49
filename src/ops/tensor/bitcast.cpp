// SPDX-License-Identifier: Apache-2.0
#include "ops/common/generator.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"to", AttrSpec::kInt}};

Types infer(const Call &call) {
  const qdtype from = call.in(0)->dtype();
  if (!call.attrs.has("to")) fail(QTN_EINVAL, "BitCast: attribute \"to\" is missing");
  const qdtype to = dtype_attribute("BitCast", call.attrs, "to", from);
  if (dtype_bits(from) != dtype_bits(to))
    fail(QTN_EDTYPE, "BitCast: ", dtype_name(from), " has ", dtype_bits(from), " bits, ", dtype_name(to), " has ",
         dtype_bits(to));
  return {{to, call.in(0)->shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor x = call.in(0)->to_contiguous();
  const auto *from = x.as<const std::uint8_t>();
  // There is no bool but 0 and 1.
  std::transform(from, from + x.nbytes(), outputs[0].as<std::uint8_t>(),
                 [is_bool = outputs[0].dtype() == QTN_BOOL](std::uint8_t byte) {
                   return is_bool ? static_cast<std::uint8_t>(byte != 0) : byte;
                 });
}

qdtype output_dtype(const Attrs &attrs, std::size_t, qdtype moved) {
  return static_cast<qdtype>(attrs.get_int("to", moved));
}

}  // namespace

const OpDef kBitCast{.name = "BitCast",
                     .min_inputs = 1,
                     .max_inputs = 1,
                     .max_outputs = 1,
                     .attrs = kAttrs,
                     .any_type = true,
                     .infer = infer,
                     .run = run,
                     .output_dtype = output_dtype};

}  // namespace qtn::ops
