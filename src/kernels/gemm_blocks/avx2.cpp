// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm_blocks/ymm.hpp"

namespace qtn::kernels::gemm_blocks_avx2 {
namespace {

struct Pairs : Ymm {
  static constexpr int kUp = 128;  // what dot_bytes() takes off elements by itself

  /// Pairs of products stay below 2^15 if no factor is over 128, so weights give their sign to x.
  static __m256i dot_bytes(__m256i acc, __m256i w, __m256i x) {
    w = _mm256_xor_si256(w, _mm256_set1_epi8(-128));
    return add_pairs(acc, _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)));
  }
  static __m256i dot_halves(__m256i acc, __m256i w, __m256i x, __m256i next) {
    return add_pairs(
        acc, _mm256_add_epi16(_mm256_maddubs_epi16(low_halves(w), x), _mm256_maddubs_epi16(high_halves(w), next)));
  }

 private:
  static __m256i add_pairs(__m256i acc, __m256i pairs) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
};

template <int bits, bool zeros>
void run_form(const BlocksArgs &args) {
  run_two_rows<Pairs, bits, zeros>(args);
}

}  // namespace

#include "kernels/gemm_blocks/entries.inc"

}  // namespace qtn::kernels::gemm_blocks_avx2
