// SPDX-License-Identifier: Apache-2.0
#include "blas/gemm.hpp"

#include <cblas.h>

#include <algorithm>

#include "base/memory.hpp"
#include "base/parallel.hpp"

namespace qtn::blas {
namespace {

// Work below this many multiply-adds is not worth a second thread.
constexpr std::int64_t kChunkWork = std::int64_t{1} << 21;

void use_one_thread() {
  static const bool done = (openblas_set_num_threads(1), true);
  (void)done;
}

CBLAS_TRANSPOSE form(Operand o) { return o.transposed ? CblasTrans : CblasNoTrans; }

void call(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float *a, Operand fa, const float *b,
          Operand fb, float beta, float *c, std::int64_t ldc) {
  cblas_sgemm(CblasRowMajor, form(fa), form(fb), static_cast<blasint>(m), static_cast<blasint>(n),
              static_cast<blasint>(k), alpha, a, static_cast<blasint>(fa.ld), b, static_cast<blasint>(fb.ld), beta, c,
              static_cast<blasint>(ldc));
}

void call(std::int64_t m, std::int64_t n, std::int64_t k, double alpha, const double *a, Operand fa, const double *b,
          Operand fb, double beta, double *c, std::int64_t ldc) {
  cblas_dgemm(CblasRowMajor, form(fa), form(fb), static_cast<blasint>(m), static_cast<blasint>(n),
              static_cast<blasint>(k), alpha, a, static_cast<blasint>(fa.ld), b, static_cast<blasint>(fb.ld), beta, c,
              static_cast<blasint>(ldc));
}

template <class T>
void gemm_in_chunks(std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T *a, Operand fa, const T *b,
                    Operand fb, T beta, T *c, std::int64_t ldc) {
  if (m == 0 || n == 0) return;
  use_one_thread();
  if (k == 0) {
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) c[i * ldc + j] = beta == T(0) ? T(0) : beta * c[i * ldc + j];
    return;
  }
  // The longer side is cut, into at most 16 pieces of at least kChunkWork each.
  const bool by_rows = m >= n;
  const std::int64_t side = by_rows ? m : n;
  const std::int64_t pieces = std::clamp<std::int64_t>(m * n / std::max<std::int64_t>(1, kChunkWork / k), 1, 16);
  const std::int64_t step = static_cast<std::int64_t>(
      round_up(ceil_div(static_cast<std::size_t>(side), static_cast<std::size_t>(pieces)), 16));
  parallel_for(ceil_div(static_cast<std::size_t>(side), static_cast<std::size_t>(step)), [&](std::size_t piece) {
    const std::int64_t from = static_cast<std::int64_t>(piece) * step, length = std::min(step, side - from);
    if (by_rows)
      call(length, n, k, alpha, a + (fa.transposed ? from : from * fa.ld), fa, b, fb, beta, c + from * ldc, ldc);
    else
      call(m, length, k, alpha, a, fa, b + (fb.transposed ? from * fb.ld : from), fb, beta, c + from, ldc);
  });
}

}  // namespace

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float *a, Operand fa, const float *b,
          Operand fb, float beta, float *c, std::int64_t ldc) {
  gemm_in_chunks(m, n, k, alpha, a, fa, b, fb, beta, c, ldc);
}

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, double alpha, const double *a, Operand fa, const double *b,
          Operand fb, double beta, double *c, std::int64_t ldc) {
  gemm_in_chunks(m, n, k, alpha, a, fa, b, fb, beta, c, ldc);
}

}  // namespace qtn::blas
