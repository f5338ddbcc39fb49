// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx2.hpp"

#include "kernels/pool/blocks.hpp"

namespace qtn::kernels::pool_avx2 {
namespace {

struct Avx2 {
  using Bytes = __m256i;
  struct Words {
    __m256i lo, hi;
  };

  static __m256i all(std::int32_t v) { return _mm256_set1_epi32(v); }
  static __m256 all(float v) { return _mm256_set1_ps(v); }
  static Bytes max(Bytes a, Bytes b) { return _mm256_max_epu8(a, b); }
  static Words none() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  static void add(Words &to, Bytes x) {
    const __m256i zero = _mm256_setzero_si256();
    to.lo = _mm256_add_epi16(to.lo, _mm256_unpacklo_epi8(x, zero));
    to.hi = _mm256_add_epi16(to.hi, _mm256_unpackhi_epi8(x, zero));
  }
  static void add(__m256i (&sum)[4], const Words &words) {
    const __m256i zero = _mm256_setzero_si256();
    sum[0] = _mm256_add_epi32(sum[0], _mm256_unpacklo_epi16(words.lo, zero));
    sum[1] = _mm256_add_epi32(sum[1], _mm256_unpackhi_epi16(words.lo, zero));
    sum[2] = _mm256_add_epi32(sum[2], _mm256_unpacklo_epi16(words.hi, zero));
    sum[3] = _mm256_add_epi32(sum[3], _mm256_unpackhi_epi16(words.hi, zero));
  }
};

}  // namespace

void max(const PoolArgs &args) { max_blocks<Avx2>(args); }
void average(const PoolArgs &args) { average_blocks<Avx2>(args); }

}  // namespace qtn::kernels::pool_avx2
