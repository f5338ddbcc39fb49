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

/// Throws QTN_EUNSUPPORTED with the names tried where no BLAS can be loaded, and std::bad_alloc where there is no
/// memory for one product at a time.
const Library &library();

/// Held while BLAS computes. OpenBLAS keeps a buffer of 128 MB for each product that it computes at a time; without
/// address space for another one it would try forever, or end the process. So another one is asked for only where it
/// fits, and else a product waits for one that ends.
class Turn {
 public:
  Turn();
  ~Turn();
  Turn(const Turn &) = delete;
  Turn &operator=(const Turn &) = delete;

 private:
  bool first_of_buffer_ = false;
};

}  // namespace qtn::blas
