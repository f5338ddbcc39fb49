// SPDX-License-Identifier: Apache-2.0
// The BLAS of this system. It is loaded at the first product of floats and never before: OpenBLAS starts threads as
// soon as it is loaded, and int8 networks run where there is none.
#pragma once

namespace qtn::blas {

enum Order : int { kRowMajor = 101 };
enum Form : int { kPlain = 111, kTransposed = 112 };

template <class T>
using Gemm = void (*)(Order order, Form a_form, Form b_form, int m, int n, int k, T alpha, const T *a, int lda,
                      const T *b, int ldb, T beta, T *c, int ldc);

struct Library {
  Gemm<float> sgemm;
  Gemm<double> dgemm;
};

/// Throws QTN_EUNSUPPORTED with the names tried where no BLAS can be loaded.
const Library &library();

}  // namespace qtn::blas
