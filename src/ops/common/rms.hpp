// SPDX-License-Identifier: Apache-2.0
// Rows divided by the root of the mean of their squares: RMSNormalization and what ONNX Runtime's tools write for it.
#pragma once

#include <cmath>

#include "base/parallel.hpp"
#include "kernels/rows/rows.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"
#include "ops/common/sums.hpp"

namespace qtn::ops {

/// x and scale are of one type of real numbers, and scale broadcasts to x; so does the rest of the call.
inline void check_rms(const char *op, const Tensor &x, const Tensor &scale) {
  require_real(op, "x", &x);
  require_same_dtype(op, x, scale);
  if (scale.rank() > x.rank() || !(broadcast(x.shape(), scale.shape(), op) == x.shape()))
    fail(QTN_ESHAPE, op, ": scale ", to_string(scale.shape()), " does not broadcast to x ", to_string(x.shape()));
}

/// y = x / sqrt(mean of the squares of a row + epsilon) * scale; rows are all axes from `axis` on. `inverses`, one for
/// each row, may be nullptr. y may be x.
template <class T>
void rms_normalize(const Tensor &x, const Tensor &scale, std::size_t axis, double epsilon, const Tensor &y,
                   float *inverses) {
  const std::int64_t length = element_count(x.shape(), axis, x.rank());
  parallel_for(static_cast<std::size_t>(element_count(x.shape(), 0, axis)), [&](std::size_t row) {
    const T *from = x.as<const T>() + static_cast<std::int64_t>(row) * length;
    T *to = y.as<T>() + static_cast<std::int64_t>(row) * length;
    const double squares =
        sum_of(length, [from](std::int64_t i) { return static_cast<double>(from[i]) * static_cast<double>(from[i]); });
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(length) + epsilon);
    for (std::int64_t i = 0; i < length; ++i) to[i] = static_cast<T>(static_cast<double>(from[i]) * inverse);
    if (inverses) inverses[row] = static_cast<float>(inverse);
  });
  map_broadcast<T, T>(y, scale, y.shape(), y.as<T>(), [](T v, T s) { return v * s; });
}

/// The same where there is one scale for each element of a row, as networks have it.
inline void rms_normalize_rows(const Tensor &x, const Tensor &scale, std::size_t length, double epsilon,
                               const Tensor &y, float *inverses) {
  const std::size_t rows = static_cast<std::size_t>(x.count()) / length;
  parallel_ranges(rows, rows,
                  [&, run = kernels::rows_kernel().root_mean_square](std::size_t begin, std::size_t end, std::size_t) {
                    run({{x.as<const float>() + begin * length, end - begin, length, epsilon, scale.as<const float>()},
                         y.as<float>() + begin * length,
                         inverses ? inverses + begin : nullptr});
                  });
}

inline void rms_normalize(const Tensor &x, const Tensor &scale, std::size_t axis, double epsilon, const Tensor &y,
                          float *inverses) {
  const std::int64_t length = element_count(x.shape(), axis, x.rank());
  const bool row = scale.count() == length && scale.rank() + axis >= x.rank() &&
                   std::equal(x.shape().begin() + axis, x.shape().end(), scale.shape().end() - (x.rank() - axis));
  if (x.dtype() == QTN_FLOAT32 && x.count() > 0 && row)
    return rms_normalize_rows(x, scale, static_cast<std::size_t>(length), epsilon, y, inverses);
  x.dtype() == QTN_FLOAT64 ? rms_normalize<double>(x, scale, axis, epsilon, y, inverses)
                           : rms_normalize<float>(x, scale, axis, epsilon, y, inverses);
}

}  // namespace qtn::ops
