// SPDX-License-Identifier: Apache-2.0
// What global pools share: the places of each channel become one.
#pragma once

#include "ops/common/reduction.hpp"

namespace qtn::ops {

inline Shape global_pool_shape(const char *op, const Shape &x) {
  if (x.size() < 3) fail(QTN_ESHAPE, op, ": x ", to_string(x), " has no spatial axes");
  Shape shape = x;
  std::fill(shape.begin() + 2, shape.end(), 1);
  return shape;
}

inline AxisSet spatial_axes(const Call &call) {
  AxisSet axes{};
  std::fill(axes.begin() + 2, axes.begin() + static_cast<std::ptrdiff_t>(call.in(0)->rank()), true);
  return axes;
}

}  // namespace qtn::ops
