// SPDX-License-Identifier: Apache-2.0
// Sums and extremes of float32 over whole axes, by kernels wherever elements follow one another.
#pragma once

#include "kernels/pointwise/pointwise.hpp"
#include "kernels/rows/rows.hpp"
#include "ops/common/reduction.hpp"

namespace qtn::ops {

using kernels::Addends;

/// y = f(sum of these of x over the axes / divisor), in double; of no f, that itself.
void sum_floats(Addends of, const Tensor &x, const AxisSet &axes, double divisor, double (*f)(double), const Tensor &y);

double row_sum(const float *x, std::size_t count);

/// The largest or smallest of so many elements; of none, what every number is larger or smaller than.
float extremum_of(kernels::Arithmetic max_or_min, const float *x, std::size_t count);

/// y = that over the axes, where 0 has no sign: neither does the order then matter. Tensors of any strides.
void extremum_floats(kernels::Arithmetic max_or_min, const Tensor &x, const AxisSet &axes, const Tensor &y);

/// The same of the operand of a call, of every type.
void reduce_extremum(kernels::Arithmetic max_or_min, const Call &call, const AxisSet &axes, const Tensor &y);

/// Columns of a matrix, at most kMostColumns of them: what of each is added to sums[c], or found beside founds[c].
inline constexpr std::size_t kMostColumns = 256;
void column_sums(Addends of, const float *x, std::size_t rows, std::ptrdiff_t row, std::size_t columns, double *sums);
void column_extremes(kernels::Arithmetic max_or_min, const float *x, std::size_t rows, std::ptrdiff_t row,
                     std::size_t columns, float *founds);

}  // namespace qtn::ops
