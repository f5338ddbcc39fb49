// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx2.hpp"

#include "kernels/grid/rows.hpp"

namespace qtn::kernels::grid_avx2 {
namespace {

inline __m128i load8(const void *p) { return _mm_loadl_epi64(static_cast<const __m128i *>(p)); }
inline __m128i load16(const void *p) { return _mm_loadu_si128(static_cast<const __m128i *>(p)); }

inline void put(void *p, __m128i v, bool stream) {
  stream ? _mm_stream_si128(static_cast<__m128i *>(p), v) : _mm_storeu_si128(static_cast<__m128i *>(p), v);
}
inline void put(void *p, __m256i v, bool stream) {
  stream ? _mm256_stream_si256(static_cast<__m256i *>(p), v) : _mm256_storeu_si256(static_cast<__m256i *>(p), v);
}

struct Avx2 {
  using Floats = __m256;
  using Ints = __m256i;
  static constexpr std::size_t kLanes = 8;

  static Floats all(float v) { return _mm256_set1_ps(v); }
  static Ints all(std::int32_t v) { return _mm256_set1_epi32(v); }
  static Floats multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static Floats divide(Floats a, Floats b) { return _mm256_div_ps(a, b); }
  /// The second operand if one of the two is NaN.
  static Floats min(Floats a, Floats b) { return _mm256_min_ps(a, b); }
  static Floats max(Floats a, Floats b) { return _mm256_max_ps(a, b); }
  static Ints min(Ints a, Ints b) { return _mm256_min_epi32(a, b); }
  static Ints max(Ints a, Ints b) { return _mm256_max_epi32(a, b); }
  static Ints add(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
  static Ints subtract(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }
  static Ints round(Floats v) { return _mm256_cvtps_epi32(v); }
  static Floats to_floats(Ints v) { return _mm256_cvtepi32_ps(v); }
  static Floats or_zero(Floats v) { return _mm256_and_ps(v, _mm256_cmp_ps(v, v, _CMP_ORD_Q)); }
  static bool any_nan(Floats a, Floats b) { return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q)) != 0; }
  /// Whether any quotient is not known well enough from these products: quotient.hpp.
  static bool any_unsure(Floats a, Floats b) {
    const auto of = [](Floats v) {
      const Floats off = _mm256_andnot_ps(all(-0.0f), _mm256_sub_ps(v, to_floats(round(v))));
      return _mm256_cmp_ps(off, all(kSureWithin), _CMP_NLE_UQ);
    };
    return _mm256_movemask_ps(_mm256_or_ps(of(a), of(b))) != 0;
  }
  static void fence() { _mm_sfence(); }

  /// clamp(rint(v) + zero): in double, where nothing of it overflows.
  static Ints round_wide(Floats v, Ints zero, std::int32_t lo, std::int32_t hi) {
    const __m256 rounded = _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const auto half = [&](__m128 r, __m128i z) {
      const __m256d q = _mm256_add_pd(_mm256_cvtps_pd(r), _mm256_cvtepi32_pd(z));
      return _mm256_cvtpd_epi32(_mm256_min_pd(_mm256_max_pd(q, _mm256_set1_pd(lo)), _mm256_set1_pd(hi)));
    };
    const __m128i low = half(_mm256_castps256_ps128(rounded), _mm256_castsi256_si128(zero));
    const __m128i high = half(_mm256_extractf128_ps(rounded, 1), _mm256_extracti128_si256(zero, 1));
    return _mm256_set_m128i(high, low);
  }
  /// The same without a zero point; conversion makes what is too large INT_MIN.
  static Ints round_centered(Floats v, std::int32_t lo, std::int32_t hi) {
    const __m256i over = _mm256_castps_si256(_mm256_cmp_ps(v, all(2147483648.0f), _CMP_GE_OQ));
    return min(max(_mm256_blendv_epi8(round(v), all(2147483647), over), all(lo)), all(hi));
  }
  /// float(v - zero), rounded once.
  static Floats steps_wide(Ints v, Ints zero) {
    const auto half = [&](__m128i q, __m128i z) {
      return _mm256_cvtpd_ps(_mm256_sub_pd(_mm256_cvtepi32_pd(q), _mm256_cvtepi32_pd(z)));
    };
    const __m128 low = half(_mm256_castsi256_si128(v), _mm256_castsi256_si128(zero));
    const __m128 high = half(_mm256_extracti128_si256(v, 1), _mm256_extracti128_si256(zero, 1));
    return _mm256_set_m128(high, low);
  }

  static Floats load(const float *p) { return _mm256_loadu_ps(p); }
  static Ints load(const std::int32_t *p) { return kernels::load(p); }
  static Ints load(const std::uint8_t *p) { return _mm256_cvtepu8_epi32(load8(p)); }
  static Ints load(const std::int8_t *p) { return _mm256_cvtepi8_epi32(load8(p)); }
  static Ints load(const std::uint16_t *p) { return _mm256_cvtepu16_epi32(load16(p)); }
  static Ints load(const std::int16_t *p) { return _mm256_cvtepi16_epi32(load16(p)); }
  /// A byte widened to 64 bits becomes two dwords by one shift.
  template <bool kSigned>
  static Ints load(const Nibbles<kSigned> *p) {
    std::int32_t bytes;
    __builtin_memcpy(&bytes, p, sizeof bytes);
    const __m256i v = _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(bytes));
    const __m256i q = _mm256_and_si256(_mm256_or_si256(v, _mm256_slli_epi64(v, 28)), all(15));
    return kSigned ? _mm256_sub_epi32(_mm256_xor_si256(q, all(8)), all(8)) : q;
  }

  static void store(float *p, Floats v, bool stream) { grid_avx2::put(p, _mm256_castps_si256(v), stream); }
  static void store(std::int32_t *p, Ints v, bool stream) { grid_avx2::put(p, v, stream); }
  static void store(std::uint8_t *p, Ints v, bool) { store_bytes(p, v); }
  static void store(std::int8_t *p, Ints v, bool) { store_bytes(p, v); }
  static void store(std::uint16_t *p, Ints v, bool stream) { store_words(p, v, stream); }
  static void store(std::int16_t *p, Ints v, bool stream) { store_words(p, v, stream); }
  template <bool kSigned>
  static void store(Nibbles<kSigned> *p, Ints v, bool) {
    const __m256i q = _mm256_and_si256(v, all(15)), pairs = _mm256_or_si256(q, _mm256_srli_epi64(q, 28));
    const __m256i gathered =
        _mm256_shuffle_epi8(pairs, _mm256_setr_epi8(0, 8, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,  //
                                                    -1, -1, 0, 8, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
    const int bytes =
        _mm_cvtsi128_si32(_mm_or_si128(_mm256_castsi256_si128(gathered), _mm256_extracti128_si256(gathered, 1)));
    __builtin_memcpy(p, &bytes, sizeof bytes);
  }

  // Packing. Bytes leave in order; words that are not the result stay as the instruction leaves them.
  static Ints all(std::int16_t v) { return _mm256_set1_epi16(v); }
  static Ints all(std::int8_t v) { return _mm256_set1_epi8(v); }
  static Ints all(std::uint8_t v) { return _mm256_set1_epi8(static_cast<char>(v)); }
  static Ints words(std::int16_t, Ints a, Ints b) { return _mm256_packs_epi32(a, b); }
  static Ints words(std::uint16_t, Ints a, Ints b) { return _mm256_packus_epi32(a, b); }
  static Ints add_words(Ints a, Ints b) { return _mm256_adds_epi16(a, b); }
  static Ints bytes(std::int8_t, Ints ab, Ints cd) { return in_order(_mm256_packs_epi16(ab, cd)); }
  static Ints bytes(std::uint8_t, Ints ab, Ints cd) { return in_order(_mm256_packus_epi16(ab, cd)); }
  static Ints min(Ints a, Ints b, std::int8_t) { return _mm256_min_epi8(a, b); }
  static Ints min(Ints a, Ints b, std::uint8_t) { return _mm256_min_epu8(a, b); }
  static Ints max(Ints a, Ints b, std::int8_t) { return _mm256_max_epi8(a, b); }
  static Ints max(Ints a, Ints b, std::uint8_t) { return _mm256_max_epu8(a, b); }
  static void put(std::int8_t *p, Ints v, bool stream) { grid_avx2::put(p, v, stream); }
  static void put(std::uint8_t *p, Ints v, bool stream) { grid_avx2::put(p, v, stream); }
  static void put(std::int16_t *p, Ints v, bool stream) { put_words(p, v, stream); }
  static void put(std::uint16_t *p, Ints v, bool stream) { put_words(p, v, stream); }
  static void put_nibbles(void *p, Ints bytes, bool stream) {
    const __m256i nibbles = _mm256_and_si256(bytes, _mm256_set1_epi8(15));
    const __m256i pairs = _mm256_maddubs_epi16(nibbles, _mm256_set1_epi16(0x1001));
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi16(pairs, pairs), 0x08);
    grid_avx2::put(p, _mm256_castsi256_si128(packed), stream);
  }

 private:
  static Ints in_order(Ints packed) {
    return _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  }
  static void put_words(void *p, Ints v, bool stream) { grid_avx2::put(p, _mm256_permute4x64_epi64(v, 0xd8), stream); }
  static void store_bytes(void *p, Ints v) {
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    const __m128i low = _mm_and_si128(words, _mm_set1_epi16(255));
    _mm_storel_epi64(static_cast<__m128i *>(p), _mm_packus_epi16(low, low));
  }
  static void store_words(void *p, Ints v, bool stream) {
    const __m256i low = _mm256_and_si256(v, all(65535));
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);
    grid_avx2::put(p, _mm256_castsi256_si128(words), stream);
  }
};

}  // namespace

void quantize(const GridQuantizeArgs &args) { quantize_grid<Avx2>(args); }
void dequantize(const GridDequantizeArgs &args) { dequantize_grid<Avx2>(args); }
FloatRange range(const float *x, std::size_t count) { return range_of<Avx2>(x, count); }

}  // namespace qtn::kernels::grid_avx2
