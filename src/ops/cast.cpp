// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

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
  return {{to, call.in(0)->shape()}};
}

// ONNX leaves a float outside the integer's range undefined; C++ would too, so it saturates. NaN becomes 0.
template <class To, class From>
To convert(From v) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>) {
    constexpr double below = static_cast<double>(std::numeric_limits<To>::lowest());
    constexpr double above = static_cast<double>(std::numeric_limits<To>::max());
    if (std::isnan(v)) return 0;
    if (static_cast<double>(v) <= below) return std::numeric_limits<To>::lowest();
    if (static_cast<double>(v) >= above) return std::numeric_limits<To>::max();
  }
  return static_cast<To>(v);
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
  const Tensor y = converted(to_plain(*call.in(0)), plain_dtype(to));
  copy_elements(outputs[0], from_plain(y, to, call.attrs.get_int("saturate", 1) != 0));
}

// Opset 24 added a rounding for types that this version does not have.
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
