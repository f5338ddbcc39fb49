// SPDX-License-Identifier: Apache-2.0
#include "ops/common/matrices.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  require_real("Det", "x", &x);
  require_square("Det", x);
  return {{x.dtype(), Shape(std::span(x.shape().data(), x.rank() - 2))}};
}

/// The product of the pivots of elimination; rows [n][n] are overwritten.
double determinant(double *rows, std::int64_t n) {
  double product = 1;
  for (std::int64_t k = 0; k < n; ++k) {
    const bool exchanged = bring_pivot(rows, n, n, k);
    const double pivot = rows[k * n + k];
    product *= exchanged ? -pivot : pivot;
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
