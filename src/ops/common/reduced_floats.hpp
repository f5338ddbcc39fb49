// SPDX-License-Identifier: Apache-2.0
// Sums and extremes of float32 over whole axes, by kernels wherever elements follow one another.
#pragma once

#include "kernels/pointwise/pointwise.hpp"
#include "ops/common/reduction.hpp"

namespace qtn::ops {

enum class Addends { numbers, magnitudes, squares };

/// y = finish(sum of these of x over the axes, in double, and how many they are).
void sum_floats(Addends of, const Tensor &x, const AxisSet &axes, double (*finish)(double sum, double count),
                const Tensor &y);

/// The largest or smallest of so many elements; of none, what every number is larger or smaller than.
float extremum_of(kernels::Arithmetic max_or_min, const float *x, std::size_t count);

/// y = that over the axes. Tensors of any strides.
void extremum_floats(kernels::Arithmetic max_or_min, const Tensor &x, const AxisSet &axes, const Tensor &y);

}  // namespace qtn::ops
