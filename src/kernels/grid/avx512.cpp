// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx512.hpp"

#include "kernels/grid/rows.hpp"

namespace qtn::kernels::grid_avx512 {
namespace {

inline __m128i load16(const void *p) { return _mm_loadu_si128(static_cast<const __m128i *>(p)); }
inline __m256i load32(const void *p) { return _mm256_loadu_si256(static_cast<const __m256i *>(p)); }

inline void put(void *p, __m128i v, bool stream) {
  stream ? _mm_stream_si128(static_cast<__m128i *>(p), v) : _mm_storeu_si128(static_cast<__m128i *>(p), v);
}
inline void put(void *p, __m256i v, bool stream) {
  stream ? _mm256_stream_si256(static_cast<__m256i *>(p), v) : _mm256_storeu_si256(static_cast<__m256i *>(p), v);
}
inline void put(void *p, __m512i v, bool stream) {
  stream ? _mm512_stream_si512(static_cast<__m512i *>(p), v) : _mm512_storeu_si512(p, v);
}

struct Avx512 {
  using Floats = __m512;
  using Ints = __m512i;
  static constexpr std::size_t kLanes = 16;

  static Floats all(float v) { return _mm512_set1_ps(v); }
  static Ints all(std::int32_t v) { return _mm512_set1_epi32(v); }
  static Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats divide(Floats a, Floats b) { return _mm512_div_ps(a, b); }
  /// The second operand if one of the two is NaN.
  static Floats min(Floats a, Floats b) { return _mm512_min_ps(a, b); }
  static Floats max(Floats a, Floats b) { return _mm512_max_ps(a, b); }
  static Ints min(Ints a, Ints b) { return _mm512_min_epi32(a, b); }
  static Ints max(Ints a, Ints b) { return _mm512_max_epi32(a, b); }
  static Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
  static Ints subtract(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
  static Ints round(Floats v) { return _mm512_cvtps_epi32(v); }
  static Floats to_floats(Ints v) { return _mm512_cvtepi32_ps(v); }
  static Floats or_zero(Floats v) { return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v, v, _CMP_ORD_Q), v); }
  static bool any_nan(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q) != 0; }
  /// Whether any quotient is not known well enough from these products: quotient.hpp.
  static bool any_unsure(Floats a, Floats b) {
    const auto of = [](Floats v) {
      const Floats off = _mm512_abs_ps(_mm512_sub_ps(v, to_floats(round(v))));
      return _mm512_cmp_ps_mask(off, all(kSureWithin), _CMP_NLE_UQ);
    };
    return _kortestz_mask16_u8(of(a), of(b)) == 0;
  }
  static void fence() { _mm_sfence(); }

  /// clamp(rint(v) + zero): in double, where nothing of it overflows.
  static Ints round_wide(Floats v, Ints zero, std::int32_t lo, std::int32_t hi) {
    const __m512 rounded = _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const auto half = [&](__m256 r, __m256i z) {
      const __m512d q = _mm512_add_pd(_mm512_cvtps_pd(r), _mm512_cvtepi32_pd(z));
      return _mm512_cvtpd_epi32(_mm512_min_pd(_mm512_max_pd(q, _mm512_set1_pd(lo)), _mm512_set1_pd(hi)));
    };
    const __m256i low = half(_mm512_castps512_ps256(rounded), _mm512_castsi512_si256(zero));
    const __m256i high = half(_mm512_extractf32x8_ps(rounded, 1), _mm512_extracti32x8_epi32(zero, 1));
    return _mm512_inserti32x8(_mm512_castsi256_si512(low), high, 1);
  }
  /// The same without a zero point; conversion makes what is too large INT_MIN.
  static Ints round_centered(Floats v, std::int32_t lo, std::int32_t hi) {
    const __mmask16 over = _mm512_cmp_ps_mask(v, all(2147483648.0f), _CMP_GE_OQ);
    return min(max(_mm512_mask_mov_epi32(round(v), over, all(2147483647)), all(lo)), all(hi));
  }
  /// float(v - zero), rounded once.
  static Floats steps_wide(Ints v, Ints zero) {
    const auto half = [&](__m256i q, __m256i z) {
      return _mm512_cvtpd_ps(_mm512_sub_pd(_mm512_cvtepi32_pd(q), _mm512_cvtepi32_pd(z)));
    };
    const __m256 low = half(_mm512_castsi512_si256(v), _mm512_castsi512_si256(zero));
    const __m256 high = half(_mm512_extracti32x8_epi32(v, 1), _mm512_extracti32x8_epi32(zero, 1));
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
  }

  static Floats load(const float *p) { return _mm512_loadu_ps(p); }
  static Ints load(const std::int32_t *p) { return _mm512_loadu_si512(p); }
  static Ints load(const std::uint8_t *p) { return _mm512_cvtepu8_epi32(load16(p)); }
  static Ints load(const std::int8_t *p) { return _mm512_cvtepi8_epi32(load16(p)); }
  static Ints load(const std::uint16_t *p) { return _mm512_cvtepu16_epi32(load32(p)); }
  static Ints load(const std::int16_t *p) { return _mm512_cvtepi16_epi32(load32(p)); }
  /// A byte widened to 64 bits becomes two dwords by one shift.
  template <bool kSigned>
  static Ints load(const Nibbles<kSigned> *p) {
    const __m512i v = _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(p)));
    const __m512i q = _mm512_and_si512(_mm512_or_si512(v, _mm512_slli_epi64(v, 28)), all(15));
    return kSigned ? _mm512_sub_epi32(_mm512_xor_si512(q, all(8)), all(8)) : q;
  }

  static void store(float *p, Floats v, bool stream) { grid_avx512::put(p, _mm512_castps_si512(v), stream); }
  static void store(std::int32_t *p, Ints v, bool stream) { grid_avx512::put(p, v, stream); }
  static void store(std::uint8_t *p, Ints v, bool stream) { grid_avx512::put(p, _mm512_cvtepi32_epi8(v), stream); }
  static void store(std::int8_t *p, Ints v, bool stream) { grid_avx512::put(p, _mm512_cvtepi32_epi8(v), stream); }
  static void store(std::uint16_t *p, Ints v, bool stream) { grid_avx512::put(p, _mm512_cvtepi32_epi16(v), stream); }
  static void store(std::int16_t *p, Ints v, bool stream) { grid_avx512::put(p, _mm512_cvtepi32_epi16(v), stream); }
  template <bool kSigned>
  static void store(Nibbles<kSigned> *p, Ints v, bool) {
    const __m512i q = _mm512_and_si512(v, all(15));
    const __m128i bytes = _mm512_cvtepi64_epi8(_mm512_or_si512(q, _mm512_srli_epi64(q, 28)));
    _mm_storel_epi64(reinterpret_cast<__m128i *>(p), bytes);
  }

  // Packing. Bytes leave in order; words that are not the result stay as the instruction leaves them.
  static Ints all(std::int16_t v) { return _mm512_set1_epi16(v); }
  static Ints all(std::int8_t v) { return _mm512_set1_epi8(v); }
  static Ints all(std::uint8_t v) { return _mm512_set1_epi8(static_cast<char>(v)); }
  static Ints words(std::int16_t, Ints a, Ints b) { return _mm512_packs_epi32(a, b); }
  static Ints words(std::uint16_t, Ints a, Ints b) { return _mm512_packus_epi32(a, b); }
  static Ints add_words(Ints a, Ints b) { return _mm512_adds_epi16(a, b); }
  static Ints bytes(std::int8_t, Ints ab, Ints cd) { return in_order(_mm512_packs_epi16(ab, cd)); }
  static Ints bytes(std::uint8_t, Ints ab, Ints cd) { return in_order(_mm512_packus_epi16(ab, cd)); }
  static Ints min(Ints a, Ints b, std::int8_t) { return _mm512_min_epi8(a, b); }
  static Ints min(Ints a, Ints b, std::uint8_t) { return _mm512_min_epu8(a, b); }
  static Ints max(Ints a, Ints b, std::int8_t) { return _mm512_max_epi8(a, b); }
  static Ints max(Ints a, Ints b, std::uint8_t) { return _mm512_max_epu8(a, b); }
  static void put(std::int8_t *p, Ints v, bool stream) { grid_avx512::put(p, v, stream); }
  static void put(std::uint8_t *p, Ints v, bool stream) { grid_avx512::put(p, v, stream); }
  static void put(std::int16_t *p, Ints v, bool stream) { put_words(p, v, stream); }
  static void put(std::uint16_t *p, Ints v, bool stream) { put_words(p, v, stream); }
  static void put_nibbles(void *p, Ints bytes, bool stream) {
    const __m512i nibbles = _mm512_and_si512(bytes, _mm512_set1_epi8(15));
    grid_avx512::put(p, _mm512_cvtepi16_epi8(_mm512_maddubs_epi16(nibbles, _mm512_set1_epi16(0x1001))), stream);
  }

 private:
  static Ints in_order(Ints packed) {
    return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), packed);
  }
  static void put_words(void *p, Ints v, bool stream) {
    grid_avx512::put(p, _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), v), stream);
  }
};

}  // namespace

void quantize(const GridQuantizeArgs &args) { quantize_grid<Avx512>(args); }
void dequantize(const GridDequantizeArgs &args) { dequantize_grid<Avx512>(args); }
FloatRange range(const float *x, std::size_t count) { return range_of<Avx512>(x, count); }

}  // namespace qtn::kernels::grid_avx512
