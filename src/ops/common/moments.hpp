// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "kernels/rows/rows.hpp"
#include "ops/common/sums.hpp"

namespace qtn::ops {

using Moments = kernels::RowMoments;

/// The moments of `count` numbers; NaN for no numbers. Two passes, since the mean of squares less the squared mean
/// cancels.
template <class T>
Moments moments(const T *x, std::int64_t count) {
  if constexpr (std::is_same_v<T, float>) return kernels::rows_kernel().moments(x, static_cast<std::size_t>(count));
  const double mean = sum_of(count, [x](std::int64_t i) { return x[i]; }) / static_cast<double>(count);
  const double squares = sum_of(count, [x, mean](std::int64_t i) {
    const double difference = static_cast<double>(x[i]) - mean;
    return difference * difference;
  });
  return {mean, squares / static_cast<double>(count)};
}

/// y = (x - mean) * gain + shift, in double
template <class T>
void shift_by(const T *x, std::int64_t count, double mean, double gain, double shift, T *y) {
  if constexpr (std::is_same_v<T, float>)
    return kernels::rows_kernel().shift({x, static_cast<std::size_t>(count), mean, gain, shift, y});
  for (std::int64_t i = 0; i < count; ++i) y[i] = static_cast<T>((static_cast<double>(x[i]) - mean) * gain + shift);
}

}  // namespace qtn::ops
