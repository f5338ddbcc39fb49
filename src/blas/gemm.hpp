// SPDX-License-Identifier: Apache-2.0
// Matrix products by BLAS. C = alpha * op(A) * op(B) + beta * C, row-major; op(A) is [m][k], op(B) is [k][n].
//
// Rows of C are computed by the threads of parallel_for in chunks that do not depend on how many threads there are,
// each by a single-threaded call, so results never depend on the thread count and no second thread pool
// competes with ours.
#pragma once

#include <cstdint>

namespace qtn::blas {

struct Operand {
  std::int64_t ld;  ///< row stride in elements, as stored
  bool transposed = false;
};

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float *a, Operand a_form, const float *b,
          Operand b_form, float beta, float *c, std::int64_t ldc);

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, double alpha, const double *a, Operand a_form,
          const double *b, Operand b_form, double beta, double *c, std::int64_t ldc);

}  // namespace qtn::blas
