// SPDX-License-Identifier: Apache-2.0
// Means over whole axes, for ReduceMean and GlobalAveragePool.
#pragma once

#include <array>

#include "ops/op.hpp"

namespace qtn::ops {

using AxisSet = std::array<bool, kMaxRank>;

/// y = mean of float32 x over the axes; both contiguous, y in the order of the axes kept. Empty means are NaN.
void mean_floats(const Tensor &x, const AxisSet &axes, float *y);

/// The same in integers; false where an operand is not 8-bit under one scale.
bool mean_quantized(const Tensor &x, const AxisSet &axes, const Tensor &y, const Clamp *clamp);

}  // namespace qtn::ops
