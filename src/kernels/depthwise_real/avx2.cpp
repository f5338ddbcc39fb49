// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "kernels/depthwise_real/tiles.hpp"

namespace qtn::kernels::depthwise_real_avx2 {
namespace {

struct Ymm {
  using Vector = __m256;
  static constexpr std::size_t kLanes = 8;
  static constexpr int kPixels = 5, kVectors = 2;

  static __m256i first(std::size_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static Vector load(const float *p) { return _mm256_loadu_ps(p); }
  static Vector load_part(const float *p, std::size_t n) { return _mm256_maskload_ps(p, first(n)); }
  static void store(float *p, Vector v) { _mm256_storeu_ps(p, v); }
  static void store_part(float *p, Vector v, std::size_t n) { _mm256_maskstore_ps(p, first(n), v); }
  static Vector set(float x) { return _mm256_set1_ps(x); }
  static Vector fma(Vector acc, Vector a, Vector b) { return _mm256_fmadd_ps(a, b, acc); }
  /// In this order of operands, min and max keep a NaN, as comparisons do.
  static Vector clamp(Vector v, Vector lo, Vector hi) { return _mm256_min_ps(hi, _mm256_max_ps(lo, v)); }
};

}  // namespace

void run(const DepthwiseRealArgs &args) { DepthwiseTiles<Ymm>::run(args); }

}  // namespace qtn::kernels::depthwise_real_avx2
