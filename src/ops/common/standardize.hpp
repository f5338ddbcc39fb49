// SPDX-License-Identifier: Apache-2.0
// Rows over their standard deviation, or over the root of the mean of their squares, and the way back for gradients.
#pragma once

#include <cmath>

#include "base/parallel.hpp"
#include "core/tensor.hpp"
#include "ops/common/moments.hpp"
#include "ops/common/sums.hpp"

namespace qtn::ops {

enum class Centre { mean, zero };

/// Rows of x from their centre, times the inverse root of their mean square + epsilon; these inverses come behind them.
inline void standardize(const Tensor &x, std::int64_t length, double epsilon, Centre centre, float *standard) {
  float *inverses = standard + x.count();
  parallel_for(static_cast<std::size_t>(x.count() / length), [&](std::size_t row) {
    const std::int64_t at = static_cast<std::int64_t>(row) * length;
    const float *from = x.as<const float>() + at;
    Moments m{};
    if (centre == Centre::mean)
      m = moments(from, length);
    else
      m.variance =
          sum_of(length,
                 [from](std::int64_t i) { return static_cast<double>(from[i]) * static_cast<double>(from[i]); }) /
          static_cast<double>(length);
    const double inverse = 1 / std::sqrt(m.variance + epsilon);
    for (std::int64_t i = 0; i < length; ++i)
      standard[at + i] = static_cast<float>((static_cast<double>(from[i]) - m.mean) * inverse);
    inverses[row] = static_cast<float>(inverse);
  });
}

/// The gradient of x, from that of the standardized rows, which is in its place.
inline void standardize_back(const float *standard, std::int64_t rows, std::int64_t length, Centre centre, float *dx) {
  const float *inverses = standard + rows * length;
  parallel_for(static_cast<std::size_t>(rows), [&](std::size_t row) {
    const float *v = standard + static_cast<std::int64_t>(row) * length;
    float *to = dx + static_cast<std::int64_t>(row) * length;
    const double sum = centre == Centre::mean ? sum_of(length, [to](std::int64_t i) { return to[i]; }) : 0;
    const double product = sum_of(length, [to, v](std::int64_t i) { return to[i] * v[i]; });
    const auto mean = static_cast<float>(sum / static_cast<double>(length)),
               along = static_cast<float>(product / static_cast<double>(length));
    for (std::int64_t i = 0; i < length; ++i) to[i] = inverses[row] * (to[i] - mean - along * v[i]);
  });
}

}  // namespace qtn::ops
