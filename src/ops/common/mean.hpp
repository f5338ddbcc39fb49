// SPDX-License-Identifier: Apache-2.0
// Means over whole axes, for ReduceMean and GlobalAveragePool.
#pragma once

#include "ops/common/reduction.hpp"

namespace qtn::ops {

/// y = mean of float32 x over the axes. Empty means are NaN.
void mean_floats(const Tensor &x, const AxisSet &axes, const Tensor &y);

/// The same in integers; false where an operand is not 8-bit under one scale.
bool mean_quantized(const Tensor &x, const AxisSet &axes, const Tensor &y, const Clamp *clamp);

/// dx, of the shape of x: each element takes its share of dy.
void mean_gradient(const Tensor &dy, const AxisSet &axes, const Tensor &dx);

}  // namespace qtn::ops
