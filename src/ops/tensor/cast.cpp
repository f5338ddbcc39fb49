// SPDX-License-Identifier: Apache-2.0
#include "ops/common/cast.hpp"

#include "ops/common/generator.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"to", AttrSpec::kInt}, {"saturate", AttrSpec::kInt}, {"round_mode", AttrSpec::kString}};

Types infer(const Call &call) {
  power_rounding("Cast", call.attrs);
  if (!call.attrs.has("to")) fail(QTN_EINVAL, "Cast: attribute \"to\" is missing");
  return {{dtype_attribute("Cast", call.attrs, "to", QTN_FLOAT32), call.in(0)->shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  cast_elements(*call.in(0), outputs[0], call.attrs.get_int("saturate", 1) != 0, power_rounding("Cast", call.attrs));
}

qdtype output_dtype(const Attrs &attrs, std::size_t, qdtype) {
  return static_cast<qdtype>(attrs.get_int("to", QTN_FLOAT32));
}

/// Until opset 5 types were named.
void upgrade(OldNode &node) {
  if (node.opset >= 6) return;
  constexpr std::pair<const char *, qdtype> kTypes[] = {
      {"FLOAT", QTN_FLOAT32},   {"UINT8", QTN_UINT8},    {"INT8", QTN_INT8},     {"UINT16", QTN_UINT16},
      {"INT16", QTN_INT16},     {"INT32", QTN_INT32},    {"INT64", QTN_INT64},   {"BOOL", QTN_BOOL},
      {"FLOAT16", QTN_FLOAT16}, {"DOUBLE", QTN_FLOAT64}, {"UINT32", QTN_UINT32}, {"UINT64", QTN_UINT64}};
  const std::string wanted = node.attrs.get_string("to", "");
  for (const auto &[name, dtype] : kTypes)
    if (wanted == name) return node.attrs.set("to", std::int64_t{dtype});
  fail(QTN_EUNSUPPORTED, "Cast: to \"", wanted, "\" is not supported");
}

}  // namespace

const OpDef kCast{.name = "Cast",
                  .min_inputs = 1,
                  .max_inputs = 1,
                  .max_outputs = 1,
                  .attrs = kAttrs,
                  .any_type = true,
                  .infer = infer,
                  .run = run,
                  .output_dtype = output_dtype,
                  .upgrade = upgrade};

}  // namespace qtn::ops
