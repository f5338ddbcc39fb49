// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "kernels/depthwise_real/tiles.hpp"

namespace qtn::kernels::depthwise_real_avx512 {
namespace {

struct Zmm {
  using Vector = __m512;
  static constexpr std::size_t kLanes = 16;
  static constexpr int kPixels = 8, kVectors = 2;

  static __mmask16 first(std::size_t n) { return _cvtu32_mask16((1u << n) - 1); }
  static Vector load(const float *p) { return _mm512_loadu_ps(p); }
  static Vector load_part(const float *p, std::size_t n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static void store(float *p, Vector v) { _mm512_storeu_ps(p, v); }
  static void store_part(float *p, Vector v, std::size_t n) { _mm512_mask_storeu_ps(p, first(n), v); }
  static Vector set(float x) { return _mm512_set1_ps(x); }
  static Vector fma(Vector acc, Vector a, Vector b) { return _mm512_fmadd_ps(a, b, acc); }
  /// In this order of operands, min and max keep a NaN, as comparisons do.
  static Vector clamp(Vector v, Vector lo, Vector hi) { return _mm512_min_ps(hi, _mm512_max_ps(lo, v)); }
};

}  // namespace

void run(const DepthwiseRealArgs &args) { DepthwiseTiles<Zmm>::run(args); }

}  // namespace qtn::kernels::depthwise_real_avx512
