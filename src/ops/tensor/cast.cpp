// SPDX-License-Identifier: Apache-2.0
#include "ops/common/convert.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"to", AttrSpec::kInt}, {"saturate", AttrSpec::kInt}};

Types infer(const Call &call) {
  if (!call.attrs.has("to")) fail(QTN_EINVAL, "Cast: attribute \"to\" is missing");
  const std::int64_t code = call.attrs.get_int("to", 0);
  const auto to = static_cast<qdtype>(code > 0 && code < 64 ? code : 0);
  if (dtype_name(to)[0] == '?')
    fail(QTN_EUNSUPPORTED, "Cast: to is ", code, ", which is no element type of this version");
  return {{to, call.in(0)->shape()}};
}

Tensor converted(const Tensor &x, qdtype dtype) {
  if (x.dtype() == dtype) return x;
  const Tensor y(dtype, x.shape());
  dispatch(x.dtype(), [&](auto from) {
    dispatch(dtype,
             [&](auto to) { map_elements<decltype(from), decltype(to)>(x, y, convert<decltype(to), decltype(from)>); });
  });
  return y;
}

// Types that are only stored go through the type that computes for them.
void run(const Call &call, std::span<Tensor> outputs) {
  const qdtype to = outputs[0].dtype();
  // Integers that a packed type does not have lose their high bits, as in ONNX's reference.
  const Tensor x = is_packed(to) ? converted(to_plain(*call.in(0)), QTN_INT64) : to_plain(*call.in(0));
  const Tensor y = converted(x, plain_dtype(to));
  copy_elements(outputs[0], from_plain(y, to, call.attrs.get_int("saturate", 1) != 0));
}

// Opset 24 added a rounding for types that this version does not have.
void upgrade(OldNode &node) { node.attrs.erase("round_mode"); }

qdtype output_dtype(const Attrs &attrs, std::size_t, qdtype) {
  return static_cast<qdtype>(attrs.get_int("to", QTN_FLOAT32));
}

}  // namespace

const OpDef kCast{.name = "Cast",
                  .min_inputs = 1,
                  .max_inputs = 1,
                  .max_outputs = 1,
                  .attrs = kAttrs,
                  .infer = infer,
                  .run = run,
                  .output_dtype = output_dtype,
                  .upgrade = upgrade};

}  // namespace qtn::ops
