// SPDX-License-Identifier: Apache-2.0
#include "ops/common/matrices.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "Inverse";

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  require_real(kName, "x", &x);
  require_square(kName, x);
  return {{x.dtype(), x.shape()}};
}

/// Rows [n][2n], a matrix and the identity beside it, become the identity and the inverse: Gauss and Jordan's elimination
/// with the largest pivot of each column. What has no inverse becomes infinite, or NaN.
void eliminate(double *rows, std::int64_t n) {
  const std::int64_t width = 2 * n;
  for (std::int64_t k = 0; k < n; ++k) {
    bring_pivot(rows, n, width, k);
    double *pivot = rows + k * width;
    for (std::int64_t j = width - 1; j >= k; --j) pivot[j] /= pivot[k];
    for (std::int64_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = rows[i * width + k];
      for (std::int64_t j = k; j < width; ++j) rows[i * width + j] -= factor * pivot[j];
    }
  }
}

template <class T>
void run_as(const Tensor &x, const Tensor &y) {
  const std::int64_t n = x.shape().back(), matrix = n * n;
  std::vector<double> rows(static_cast<std::size_t>(2 * matrix));
  for (std::int64_t first = 0; first < x.count(); first += matrix) {
    const T *from = x.as<const T>() + first;
    T *to = y.as<T>() + first;
    for (std::int64_t i = 0; i < n; ++i) {
      double *row = rows.data() + 2 * i * n;
      std::copy(from + i * n, from + (i + 1) * n, row);
      std::fill_n(row + n, n, 0.0);
      row[n + i] = 1;
    }
    eliminate(rows.data(), n);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        to[i * n + j] = static_cast<T>(rows[static_cast<std::size_t>((2 * i + 1) * n + j)]);
  }
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0);
  x.dtype() == QTN_FLOAT64 ? run_as<double>(x, outputs[0]) : run_as<float>(x, outputs[0]);
}

double elimination(const Call &call) { return 2 * static_cast<double>(call.in(0)->shape().back()); }

}  // namespace

const OpDef kInverse{.name = kName,
                     .domain = kMicrosoft,
                     .min_inputs = 1,
                     .max_inputs = 1,
                     .max_outputs = 1,
                     .attrs = {},
                     .infer = infer,
                     .run = run,
                     .work = elimination};

}  // namespace qtn::ops
