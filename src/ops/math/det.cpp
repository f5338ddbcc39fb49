// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  require_real("Det", "x", &x);
  const std::size_t rank = x.rank();
  if (rank < 2 || x.dim(rank - 1) != x.dim(rank - 2))
    fail(QTN_ESHAPE, "Det: x ", to_string(x.shape()), " is not of square matrices");
  return {{x.dtype(), Shape(std::span(x.shape().data(), rank - 2))}};
}

/// The product of the pivots of elimination; rows [n][n] are overwritten.
double determinant(double *rows, std::int64_t n) {
  double product = 1;
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t top = k;
    for (std::int64_t i = k + 1; i < n; ++i)
      if (std::abs(rows[i * n + k]) > std::abs(rows[top * n + k])) top = i;
    if (top != k) std::swap_ranges(rows + k * n, rows + k * n + n, rows + top * n);
    const double pivot = rows[k * n + k];
    product *= top == k ? pivot : -pivot;
    if (pivot == 0) return product;
    for (std::int64_t i = k + 1; i < n; ++i) {
      const double factor = rows[i * n + k] / pivot;
      for (std::int64_t j = k + 1; j < n; ++j) rows[i * n + j] -= factor * rows[k * n + j];
    }
  }
  return product;
}

template <class T>
void run_as(const Tensor &x, const Tensor &y) {
  const std::int64_t n = x.shape().back();
  std::vector<double> rows(static_cast<std::size_t>(n * n));
  for (std::int64_t m = 0; m < y.count(); ++m) {
    const T *from = x.as<const T>() + m * n * n;
    std::copy(from, from + n * n, rows.begin());
    y.as<T>()[m] = static_cast<T>(determinant(rows.data(), n));
  }
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0);
  x.dtype() == QTN_FLOAT64 ? run_as<double>(x, outputs[0]) : run_as<float>(x, outputs[0]);
}

double elimination(const Call &call) {
  const auto n = static_cast<double>(call.in(0)->shape().back());
  return n * n * n;
}

}  // namespace

const OpDef kDet{.name = "Det",
                 .min_inputs = 1,
                 .max_inputs = 1,
                 .max_outputs = 1,
                 .attrs = {},
                 .infer = infer,
                 .run = run,
                 .work = elimination};

}  // namespace qtn::ops
