// SPDX-License-Identifier: Apache-2.0
#include "ops/convert.hpp"
#include "ops/elementwise.hpp"
#include "ops/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"to", AttrSpec::kInt}, {"saturate", AttrSpec::kInt}};

Types infer(const Call &call) {
  if (!call.attrs.has("to")) fail(QTN_EINVAL, "Cast: attribute \"to\" is missing");
  const std::int64_t code = call.attrs.get_int("to", 0);
  const auto to = static_cast<qdtype>(code > 0 && code < 64 ? code : 0);
  if (dtype_name(to)[0] == '?')
    fail(QTN_EUNSUPPORTED, "Cast: to is ", code, ", which is no element type of this version");
  for (const qdtype dtype : {to, call.in(0)->dtype()})
    if (dtype == QTN_FLOAT16 || dtype >= QTN_BFLOAT16)
      fail(QTN_EUNSUPPORTED, "Cast: ", dtype_name(dtype), " is not supported");
  return {{to, call.in(0)->shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  dispatch(call.in(0)->dtype(), [&](auto from) {
    dispatch(outputs[0].dtype(), [&](auto to) {
      map_elements<decltype(from), decltype(to)>(*call.in(0), outputs[0], convert<decltype(to), decltype(from)>);
    });
  });
}

// Opset 24 added a rounding for float8 types, which this version does not store.
void upgrade(OldNode &node) { node.attrs.erase("round_mode"); }

}  // namespace

const OpDef kCast{.name = "Cast",
                  .min_inputs = 1,
                  .max_inputs = 1,
                  .max_outputs = 1,
                  .attrs = kAttrs,
                  .infer = infer,
                  .run = run,
                  .upgrade = upgrade};

}  // namespace qtn::ops
