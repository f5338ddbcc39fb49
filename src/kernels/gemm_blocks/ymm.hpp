// SPDX-License-Identifier: Apache-2.0
// What kernels of 256-bit vectors share. A kernel adds to Ymm its kUp, dot_bytes() and dot_halves().
#pragma once

#include "kernels/avx2.hpp"
#include "kernels/gemm_blocks/tiles.hpp"

namespace qtn::kernels {
namespace {

struct Ymm {
  using Integers = __m256i;
  using Reals = __m256;
  static constexpr int kVectors = 2;           // of a panel
  static constexpr std::size_t kAhead = 1024;  // what is fetched before it is read

  static __m256i words(const char *p) { return load(p); }
  static __m256i low_halves(__m256i w) { return _mm256_and_si256(w, _mm256_set1_epi8(15)); }
  static __m256i high_halves(__m256i w) { return low_halves(_mm256_srli_epi32(w, 4)); }
  static __m256i all(std::int32_t v) { return _mm256_set1_epi32(v); }
  static __m256i bytes(const char *p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(p)));
  }
  static __m256i product(__m256i a, __m256i b) { return _mm256_mullo_epi32(a, b); }
  static __m256i sum(__m256i a, __m256i b) { return _mm256_add_epi32(a, b); }

  static __m256 reals(const char *p) { return _mm256_loadu_ps(reinterpret_cast<const float *>(p)); }
  static __m256 all(float v) { return _mm256_set1_ps(v); }
  static __m256 times(__m256 a, __m256 b) { return _mm256_mul_ps(a, b); }
  static __m256 add(__m256 y, __m256i acc, __m256 scale) { return _mm256_fmadd_ps(_mm256_cvtepi32_ps(acc), scale, y); }

  static void store(float *y, __m256 v, __m256 lo, __m256 hi, std::size_t columns, int before) {
    // In this order of operands, min and max keep a NaN, as comparisons do.
    if (columns > static_cast<std::size_t>(before))
      ColumnStore(columns, static_cast<std::size_t>(before))(reinterpret_cast<char *>(y),
                                                             _mm256_min_ps(hi, _mm256_max_ps(lo, v)));
  }
};

template <class Body>
void each_vector(const float *x, std::size_t depth, const Body &body) {
  std::size_t k = 0;
  for (; k + 8 <= depth; k += 8) body(k, _mm256_loadu_ps(x + k));
  if (k == depth) return;
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  body(k, _mm256_maskload_ps(x + k, _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(depth - k)), lanes)));
}

void quantize_block(const float *x, std::size_t depth, std::int8_t *q, float &scale_of, std::int32_t &sum_of) {
  __m256i most = _mm256_setzero_si256();
  each_vector(x, depth, [&](std::size_t, __m256 v) {
    most = _mm256_max_epu32(most, _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(0x7fffffff)));
  });
  std::uint32_t lanes[8];
  store(lanes, most);
  for (int i = 1; i < 8; ++i) lanes[0] = lanes[i] > lanes[0] ? lanes[i] : lanes[0];
  const BlockScale scale(lanes[0]);
  const __m256 inverse = _mm256_set1_ps(scale.inverse);
  __m256i sum = _mm256_setzero_si256();
  each_vector(x, depth, [&](std::size_t k, __m256 v) {
    const __m256i integers = scale.normal ? _mm256_cvtps_epi32(_mm256_mul_ps(v, inverse)) : _mm256_setzero_si256();
    sum = _mm256_add_epi32(sum, integers);
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(integers), _mm256_extracti128_si256(integers, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i *>(q + k), _mm_packs_epi16(words, words));
  });
  store(lanes, sum);
  std::uint32_t total = 0;
  for (const std::uint32_t lane : lanes) total += lane;
  scale_of = scale.scale;
  sum_of = static_cast<std::int32_t>(total);
}

}  // namespace
}  // namespace qtn::kernels
