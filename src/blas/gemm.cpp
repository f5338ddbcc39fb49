// SPDX-License-Identifier: Apache-2.0
#include "blas/gemm.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "base/memory.hpp"
#include "base/parallel.hpp"
#include "blas/library.hpp"

namespace qtn::blas {
namespace {

// Work below this many multiply-adds is not worth a second thread.
constexpr std::int64_t kChunkWork = std::int64_t{1} << 21;

Form form(Operand o) { return o.transposed ? kTransposed : kPlain; }

/// How far rows lie apart, as BLAS takes it: where there is one row, any distance may stand, and BLAS wants its length.
std::int64_t distance(std::int64_t ld, std::int64_t rows, std::int64_t columns) {
  return rows == 1 ? std::max(ld, columns) : ld;
}

template <class T>
void gemm_in_chunks(Gemm<T> Library::*gemm_of_type, std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T *a,
                    Operand fa, const T *b, Operand fb, T beta, T *c, std::int64_t ldc) {
  if (m == 0 || n == 0) return;
  fa.ld = fa.transposed ? distance(fa.ld, k, m) : distance(fa.ld, m, k);
  fb.ld = fb.transposed ? distance(fb.ld, n, k) : distance(fb.ld, k, n);
  ldc = distance(ldc, m, n);
  if (k == 0) {
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) c[i * ldc + j] = beta == T(0) ? T(0) : beta * c[i * ldc + j];
    return;
  }
  const Gemm<T> product = library().*gemm_of_type;
  const auto call = [&](std::int64_t rows, std::int64_t columns, const T *from_a, const T *from_b, T *to) {
    const Turn turn;
    product(kRowMajor, form(fa), form(fb), static_cast<int>(rows), static_cast<int>(columns), static_cast<int>(k),
            alpha, from_a, static_cast<int>(fa.ld), from_b, static_cast<int>(fb.ld), beta, to, static_cast<int>(ldc));
  };
  // The longer side is cut, into at most 16 pieces of at least kChunkWork each.
  constexpr std::int64_t kMostPieces = 16;
  const bool by_rows = m >= n;
  const std::int64_t side = by_rows ? m : n;
  std::int64_t pieces = kMostPieces, products;
  if (!__builtin_mul_overflow(m, n, &products))
    pieces = std::clamp<std::int64_t>(products / std::max<std::int64_t>(1, kChunkWork / k), 1, kMostPieces);
  const std::int64_t step = static_cast<std::int64_t>(
      round_up(ceil_div(static_cast<std::size_t>(side), static_cast<std::size_t>(pieces)), 16));
  const std::int64_t longest = std::max({std::min(step, side), by_rows ? n : m, k, fa.ld, fb.ld, ldc});
  if (longest > std::numeric_limits<int>::max())
    fail(QTN_EUNSUPPORTED, "a product of ", m, "x", k, " by ", k, "x", n,
         " is too large for BLAS, which counts in int");
  parallel_for(ceil_div(static_cast<std::size_t>(side), static_cast<std::size_t>(step)), [&](std::size_t piece) {
    const std::int64_t from = static_cast<std::int64_t>(piece) * step, length = std::min(step, side - from);
    if (by_rows)
      call(length, n, a + (fa.transposed ? from : from * fa.ld), b, c + from * ldc);
    else
      call(m, length, a, b + (fb.transposed ? from * fb.ld : from), c + from);
  });
}

}  // namespace

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float *a, Operand fa, const float *b,
          Operand fb, float beta, float *c, std::int64_t ldc) {
  gemm_in_chunks(&Library::sgemm, m, n, k, alpha, a, fa, b, fb, beta, c, ldc);
}

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, double alpha, const double *a, Operand fa, const double *b,
          Operand fb, double beta, double *c, std::int64_t ldc) {
  gemm_in_chunks(&Library::dgemm, m, n, k, alpha, a, fa, b, fb, beta, c, ldc);
}

}  // namespace qtn::blas
