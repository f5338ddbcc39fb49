// SPDX-License-Identifier: Apache-2.0
// Vectors of doubles of any length, and those of as many floats.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace qtn::kernels {
namespace {

template <int bytes>
struct Vectors;

// A macro, since GCC converts only vectors whose size it knows. On its own it converts them in halves, so the
// instructions are named.
#define QTN_VECTORS(bytes, to_wide, to_narrow)                    \
  template <>                                                     \
  struct Vectors<bytes> {                                         \
    using Doubles [[gnu::vector_size(bytes)]] = double;           \
    using Floats [[gnu::vector_size(bytes / 2)]] = float;         \
    static Doubles wide(Floats v) { return Doubles(to_wide); }    \
    static Floats narrow(Doubles v) { return Floats(to_narrow); } \
  };
#if defined(__AVX512F__)
QTN_VECTORS(64, _mm512_cvtps_pd(__m256(v)), _mm512_cvtpd_ps(__m512d(v)))
#endif
#if defined(__AVX2__)
QTN_VECTORS(32, _mm256_cvtps_pd(__m128(v)), _mm256_cvtpd_ps(__m256d(v)))
#endif
QTN_VECTORS(16, __builtin_convertvector(v, Doubles), __builtin_convertvector(v, Floats))
#undef QTN_VECTORS

}  // namespace
}  // namespace qtn::kernels
