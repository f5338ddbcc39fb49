// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx2.hpp"

#include "kernels/gemm_blocks/tiles.hpp"

namespace qtn::kernels::gemm_blocks_avx2 {
namespace {

struct Pairs {
  using Integers = __m256i;
  using Reals = __m256;
  static constexpr int kVectors = 2;          // of a panel
  static constexpr int kUp = 128;             // what dot_bytes() takes off elements by itself
  static constexpr std::size_t kAhead = 512;  // what is fetched before it is read

  static __m256i words(const char *p) { return load(p); }
  static __m256i four(const std::int8_t *q) {
    std::int32_t bytes;
    __builtin_memcpy(&bytes, q, sizeof bytes);
    return _mm256_set1_epi32(bytes);
  }
  static __m256i all(std::int32_t v) { return _mm256_set1_epi32(v); }
  static __m256i bytes(const char *p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(p)));
  }
  static __m256i product(__m256i a, __m256i b) { return _mm256_mullo_epi32(a, b); }
  static __m256i sum(__m256i a, __m256i b) { return _mm256_add_epi32(a, b); }

  /// Pairs of products stay below 2^15 if no factor is over 128, so weights give their sign to x.
  static __m256i dot_bytes(__m256i acc, __m256i w, __m256i x) {
    w = _mm256_xor_si256(w, _mm256_set1_epi8(-128));
    return add_pairs(acc, _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)));
  }
  static __m256i dot_halves(__m256i acc, __m256i w, __m256i x, __m256i next) {
    const __m256i mask = _mm256_set1_epi8(15);
    const __m256i low = _mm256_and_si256(w, mask), high = _mm256_and_si256(_mm256_srli_epi32(w, 4), mask);
    return add_pairs(acc, _mm256_add_epi16(_mm256_maddubs_epi16(low, x), _mm256_maddubs_epi16(high, next)));
  }

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

 private:
  static __m256i add_pairs(__m256i acc, __m256i pairs) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
};

template <int bits, bool zeros>
void run_form(const BlocksArgs &args) {
  using T = BlocksTiles<Pairs, bits, zeros>;
  // Every panel meets all rows while it is in cache.
  constexpr std::size_t kMr = 2, kColumns = 64;
  for (std::size_t j = 0; j < args.n; j += kColumns) {
    const std::size_t end = j + kColumns < args.n ? j + kColumns : args.n;
    std::size_t i = 0;
    for (; i + kMr <= args.m; i += kMr) T::template rows<kMr, 1>(args, i, j, end);
    if (i < args.m) T::template rows<1, 2>(args, i, j, end);
  }
}

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

#include "kernels/gemm_blocks/entries.inc"

}  // namespace qtn::kernels::gemm_blocks_avx2
