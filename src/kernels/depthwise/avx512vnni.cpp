// SPDX-License-Identifier: Apache-2.0
// Four taps of a channel are one dword: three levels of unpacking interleave the bytes of four vectors of 64 channels,
// and vpdpbusd does the rest with every byte of every lane in use.
#include "kernels/avx512.hpp"
#include "kernels/depthwise/rolling.hpp"
#include "kernels/depthwise/strips.hpp"

namespace qtn::kernels::depthwise_avx512vnni_4tap {
namespace {

class Zmm {
 public:
  using Vector = __m512i;
  using Weight = std::int8_t;
  static constexpr int kTaps = 4, kLanes = 4, kOuts = 4, kShift = 0;

  Zmm(const QuantizedRange &range, std::size_t used) : saturate_(range), mask_(first_lanes(used)) {}

  static __m512i load(const void *p) { return kernels::load(p); }
  /// The loads are the bottleneck, and the compiler would fold a vector into each of its uses; it cannot if asm gives
  /// it.
  static __m512i load_once(const void *p) {
    __m512i v = load(p);
    __asm__("" : "+v"(v));
    return v;
  }
  static void store(void *p, __m512i v) { _mm512_storeu_si512(p, v); }
  static __m512i fill(std::uint8_t byte) { return _mm512_set1_epi8(static_cast<char>(byte)); }

  static __m512i gathered(const std::uint8_t *const (&from)[1]) { return load(from[0]); }
  static __m512i gathered(const std::uint8_t *const (&from)[2]) {
    const auto half = [&](int i) { return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from[i])); };
    return _mm512_inserti64x4(_mm512_castsi256_si512(half(0)), half(1), 1);
  }
  static __m512i gathered(const std::uint8_t *const (&from)[4]) {
    const auto lane = [&](int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i *>(from[i])); };
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(lane(0)), lane(1), 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(lane(2)), lane(3), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  }

  template <int p, int pixels>
  [[gnu::always_inline]] void put(std::uint8_t *y, __m512i v) const {
    if constexpr (pixels == 1) _mm512_mask_storeu_epi8(y, _cvtu64_mask64(mask_), v);
    if constexpr (pixels == 2)
      _mm256_mask_storeu_epi8(y, _cvtu32_mask32(static_cast<unsigned>(mask_)), _mm512_extracti64x4_epi64(v, p));
    if constexpr (pixels == 4)
      _mm_mask_storeu_epi8(y, _cvtu32_mask16(static_cast<unsigned>(mask_)), _mm512_extracti32x4_epi32(v, p));
  }

  struct Words {
    __m512i lo, hi;

    Words() = default;
    Words(__m512i a, __m512i b) : lo(_mm512_unpacklo_epi8(a, b)), hi(_mm512_unpackhi_epi8(a, b)) {}
  };

  template <int v>
  static __m512i dwords(const Words *w) {
    if constexpr (v == 0) return _mm512_unpacklo_epi16(w[0].lo, w[1].lo);
    if constexpr (v == 1) return _mm512_unpackhi_epi16(w[0].lo, w[1].lo);
    if constexpr (v == 2) return _mm512_unpacklo_epi16(w[0].hi, w[1].hi);
    if constexpr (v == 3) return _mm512_unpackhi_epi16(w[0].hi, w[1].hi);
  }

  static __m512i dot(__m512i acc, __m512i u8, __m512i s8) { return dot4(acc, u8, s8); }

  [[gnu::always_inline]] __m512i requantized(const __m512i (&acc)[4], const char *multipliers) const {
    const auto real = [&](int v) {
      return saturate_.round(scaled(acc[v], _mm512_castsi512_ps(load(multipliers + 64 * v))));
    };
    return saturate_.bytes(saturate_.words(real(0), real(1)), saturate_.words(real(2), real(3)));
  }

 private:
  Saturate saturate_;
  std::uint64_t mask_;  ///< a bit for each channel of the block
};

template <int pixels>
void run_band(const Band<Zmm, pixels> &band) {
  if (!rolls(band.window))
    Strips<Zmm, pixels, std::uint8_t>(band).run();
  else if (is_adjacent(band.window))
    Rolling<Zmm, pixels, 1>(band).run();
  else
    Rolling<Zmm, pixels, 2>(band).run();
}

}  // namespace

std::size_t packed_bytes(const DepthwiseWindow &window, std::size_t channels) {
  return Band<Zmm, 1>::Layout::packed_bytes(window, channels);
}
void pack(void *packed, const DepthwiseWindow &window, const DepthwiseWeights &w) {
  Band<Zmm, 1>::Layout::pack(packed, window, w);
}
std::size_t scratch_bytes(const DepthwiseWindow &window) { return Band<Zmm, 1>::scratch_bytes(window); }
void run_u8(const DepthwiseArgs &args) {
  for_bands<Zmm>(args, [](const auto &band) { run_band(band); });
}
void run_f32(const DepthwiseArgs &args) { run_strips<Zmm, float>(args); }

}  // namespace qtn::kernels::depthwise_avx512vnni_4tap
