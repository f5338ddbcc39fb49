// SPDX-License-Identifier: Apache-2.0
// Exact products without VNNI: both sides widened to 16 bits for vpmaddwd, since vpmaddubsw saturates.
#include "kernels/dot/zmm.hpp"

namespace qtn::kernels::dot_avx512 {
namespace {

struct Avx512 : Zmm, MixedSigns<Avx512> {
  using Bytes = __m256i;
  static constexpr std::size_t kBytes = 32;

  static Bytes load(const void *p) { return _mm256_loadu_si256(static_cast<const __m256i *>(p)); }
  static Bytes load_part(const void *p, std::size_t count) {
    return _mm256_maskz_loadu_epi8(_cvtu32_mask32(static_cast<unsigned>(first_lanes(count))), p);
  }
  static Bytes ones() { return _mm256_set1_epi8(1); }
  /// The bare addition, since GCC 12 keeps two copies of the accumulators of the intrinsic.
  static Sums dot(Sums acc, Bytes u8, Bytes s8) {
    const Sums products = _mm512_madd_epi16(_mm512_cvtepu8_epi16(u8), _mm512_cvtepi8_epi16(s8));
    __asm__("vpaddd %1, %0, %0" : "+v"(acc) : "v"(products));
    return acc;
  }
};

}  // namespace

void run(const DotArgs &args) { run_dot<Avx512>(args); }
std::int32_t sum(const void *x, std::size_t k, bool is_signed) { return sum_of<Avx512>(x, k, is_signed); }

}  // namespace qtn::kernels::dot_avx512
