// SPDX-License-Identifier: Apache-2.0
#include "ops/common/contiguous.hpp"
#include "ops/common/convert.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt}};

/// The one number, as an integer.
std::int64_t depth_of(const Tensor &t) {
  require_number("OneHot", "depth", t);
  if (t.count() != 1) fail(QTN_ESHAPE, "OneHot: depth must be one number, it is ", to_string(t.shape()));
  const auto depth = convert<std::int64_t>(item(require_constant("OneHot", "depth", t)));
  if (depth < 1) fail(QTN_EINVAL, "OneHot: depth is ", depth);
  return depth;
}

std::size_t axis_of(const Call &call) {
  return normalize_axis(call.attrs.get_int("axis", -1), call.in(0)->rank() + 1, "OneHot");
}

Types infer(const Call &call) {
  const Tensor &indices = *call.in(0), &values = *call.in(2);
  require_number("OneHot", "indices", indices);
  if (!(values.shape() == Shape{2}))
    fail(QTN_ESHAPE, "OneHot: values must be two numbers, they are ", to_string(values.shape()));
  const std::size_t axis = axis_of(call);
  Shape shape = indices.shape();
  shape.insert(axis, depth_of(*call.in(1)));
  return {{values.dtype(), shape}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &indices = *call.in(0), &values = *call.in(2), &y = outputs[0];
  const std::size_t axis = axis_of(call);
  const std::int64_t depth = y.dim(axis), inner = element_count(y.shape(), axis + 1, y.rank());
  dispatch_width(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T off = values.as<const T>()[0], on = values.as<const T>()[1];
    T *to = y.as<T>();
    std::fill_n(to, y.count(), off);
    dispatch_number(indices.dtype(), [&](auto index) {
      using Index = decltype(index);
      for (std::int64_t i = 0; i < indices.count(); ++i) {
        auto at = convert<std::int64_t>(indices.as<const Index>()[i]);
        if (at < 0) at += depth;
        if (at >= 0 && at < depth) to[i / inner * depth * inner + at * inner + i % inner] = on;
      }
    });
  });
}

}  // namespace

const OpDef kOneHot{.name = "OneHot",
                    .min_inputs = 3,
                    .max_inputs = 3,
                    .max_outputs = 1,
                    .attrs = kAttrs,
                    .infer = infer,
                    .run = run,
                    .moved = {2, 1},
                    .shapes_from = {1, 1}};

}  // namespace qtn::ops
