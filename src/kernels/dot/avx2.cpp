// SPDX-License-Identifier: Apache-2.0
// Exact products on AVX2: both sides widened to 16 bits for vpmaddwd, since vpmaddubsw saturates.
#include "kernels/dot/ymm.hpp"

namespace qtn::kernels::dot_avx2 {
namespace {

struct Avx2 : Ymm, MixedSigns<Avx2> {
  using Bytes = __m128i;
  static constexpr std::size_t kBytes = 16;

  static Bytes load(const void *p) { return _mm_loadu_si128(static_cast<const __m128i *>(p)); }
  static Bytes load_part(const void *p, std::size_t count) {
    alignas(16) char padded[kBytes] = {};
    __builtin_memcpy(padded, p, count);
    return load(padded);
  }
  static Bytes ones() { return _mm_set1_epi8(1); }
  /// The bare addition, since GCC 12 keeps two copies of the accumulators of the intrinsic.
  static Sums dot(Sums acc, Bytes u8, Bytes s8) {
    const Sums products = _mm256_madd_epi16(_mm256_cvtepu8_epi16(u8), _mm256_cvtepi8_epi16(s8));
    __asm__("vpaddd %1, %0, %0" : "+x"(acc) : "x"(products));
    return acc;
  }
};

}  // namespace

void run(const DotArgs &args) { run_dot<Avx2>(args); }
std::int32_t sum(const void *x, std::size_t k, bool is_signed) { return sum_of<Avx2>(x, k, is_signed); }

}  // namespace qtn::kernels::dot_avx2
