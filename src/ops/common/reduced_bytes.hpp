// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/pointwise/pointwise.hpp"
#include "ops/common/reduction.hpp"

namespace qtn::ops {

/// y = the largest or smallest of the operand of a call over the axes, of elements of one byte, truth values too. Tensors
/// of any strides.
void extremum_bytes(kernels::Arithmetic max_or_min, const Call &call, const AxisSet &axes, const Tensor &y);

/// y = sum of x / divisor with one rounding; false where an operand is not 8-bit under one scale.
bool sum_quantized(const Tensor &x, const AxisSet &axes, std::int64_t divisor, const Tensor &y, const Clamp *clamp);

}  // namespace qtn::ops
