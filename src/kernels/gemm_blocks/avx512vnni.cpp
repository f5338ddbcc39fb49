// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx512.hpp"
#include "kernels/gemm_blocks/tiles.hpp"

namespace qtn::kernels::gemm_blocks_avx512vnni {
namespace {

struct Vnni {
  using Integers = __m512i;
  using Reals = __m512;
  static constexpr int kVectors = 1;           // of a panel
  static constexpr int kUp = 0;                // what dot_bytes() takes off elements by itself
  static constexpr std::size_t kAhead = 1024;  // what is fetched before it is read

  static __m512i words(const char *p) { return _mm512_loadu_si512(p); }
  static __m512i low_halves(__m512i w) { return _mm512_and_si512(w, _mm512_set1_epi8(15)); }
  static __m512i high_halves(__m512i w) { return low_halves(_mm512_srli_epi32(w, 4)); }
  static __m512i all(std::int32_t v) { return _mm512_set1_epi32(v); }
  static __m512i bytes(const char *p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i *>(p)));
  }
  static __m512i product(__m512i a, __m512i b) { return _mm512_mullo_epi32(a, b); }
  static __m512i sum(__m512i a, __m512i b) { return _mm512_add_epi32(a, b); }

  static __m512i dot_bytes(__m512i sum, __m512i w, __m512i x) { return dot4(sum, w, x); }
  static __m512i dot_halves(__m512i sum, __m512i w, __m512i x, __m512i next) {
    return dot4(dot4(sum, low_halves(w), x), high_halves(w), next);
  }

  static __m512 reals(const char *p) { return _mm512_loadu_ps(reinterpret_cast<const float *>(p)); }
  static __m512 all(float v) { return _mm512_set1_ps(v); }
  static __m512 times(__m512 a, __m512 b) { return _mm512_mul_ps(a, b); }
  static __m512 add(__m512 y, __m512i sum, __m512 scale) { return _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, y); }

  static void store(float *y, __m512 v, __m512 lo, __m512 hi, std::size_t columns, int before) {
    const __mmask16 mask = _cvtu32_mask16(static_cast<unsigned>(first_lanes(columns) >> before) & 0xffff);
    // In this order of operands, min and max keep a NaN, as comparisons do.
    _mm512_mask_storeu_ps(y, mask, _mm512_min_ps(hi, _mm512_max_ps(lo, v)));
  }
};

template <int bits, bool zeros>
void run_form(const BlocksArgs &args) {
  using T = BlocksTiles<Vnni, bits, zeros>;
  // Every panel meets all rows while it is in cache.
  constexpr std::size_t kMr = 4, kColumns = 64;
  // Short ones are read fastest in the order of memory.
  constexpr std::size_t kShort = 16 << 10;
  const bool in_order = typename T::Layout(args.form).panel_bytes() < kShort;
  for (std::size_t j = 0; j < args.n; j += kColumns) {
    const std::size_t end = j + kColumns < args.n ? j + kColumns : args.n;
    std::size_t i = 0;
    for (; i + kMr <= args.m; i += kMr) T::template rows<kMr, 2>(args, i, j, end);
    for (; i + 2 <= args.m; i += 2) T::template rows<2, 4>(args, i, j, end);
    for (; i < args.m; ++i)
      in_order ? T::template rows<1, 1>(args, i, j, end) : T::template rows<1, 4>(args, i, j, end);
  }
}

void quantize_block(const float *x, std::size_t depth, std::int8_t *q, float &scale_of, std::int32_t &sum_of) {
  const auto some = [&](std::size_t k) {
    return _cvtu32_mask16(static_cast<unsigned>(first_lanes(depth - k)) & 0xffff);
  };
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  __m512i most = _mm512_setzero_si512();
  for (std::size_t k = 0; k < depth; k += 16)
    most = _mm512_max_epu32(most, _mm512_and_si512(_mm512_maskz_loadu_epi32(some(k), x + k), magnitude));
  const BlockScale scale(_mm512_reduce_max_epu32(most));
  const __m512 inverse = _mm512_set1_ps(scale.inverse);
  __m512i sum = _mm512_setzero_si512();
  for (std::size_t k = 0; k < depth; k += 16) {
    __m512i integers = _mm512_setzero_si512();
    if (scale.normal) integers = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_maskz_loadu_ps(some(k), x + k), inverse));
    sum = _mm512_add_epi32(sum, integers);
    const unsigned padded = depth - k > 8 ? 0xffff : 0xff;
    _mm_mask_storeu_epi8(q + k, _cvtu32_mask16(padded), _mm512_cvtepi32_epi8(integers));
  }
  scale_of = scale.scale;
  sum_of = _mm512_reduce_add_epi32(sum);
}

}  // namespace

#include "kernels/gemm_blocks/entries.inc"

}  // namespace qtn::kernels::gemm_blocks_avx512vnni
