// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx512.hpp"

#include "kernels/pool/pool.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels::pool_avx512 {
namespace {

/// body(load(w): the bytes of window w, the rest zero) gives the results of 64 channels of one pixel.
template <class Body>
void for_each(const PoolArgs &args, const Body &body) {
  for (std::size_t p = 0; p < args.pixels; ++p) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(p) * args.pixel_step;
    std::uint8_t *y = args.y + static_cast<std::ptrdiff_t>(p) * args.ldy;
    for (std::size_t c = 0; c < args.channels; c += 64) {
      const __mmask64 mask = _cvtu64_mask64(first_lanes(args.channels - c));
      const std::ptrdiff_t offset = at + static_cast<std::ptrdiff_t>(c);
      const auto window = [&](std::size_t w) { return _mm512_maskz_loadu_epi8(mask, args.windows[w] + offset); };
      _mm512_mask_storeu_epi8(y + c, mask, body(window));
    }
  }
}

}  // namespace

void max(const PoolArgs &args) {
  for_each(args, [&](const auto &window) {
    __m512i v = window(0);
    for (std::size_t w = 1; w < args.window_count; ++w) v = _mm512_max_epu8(v, window(w));
    return v;
  });
}

void average(const PoolArgs &args) {
  constexpr std::size_t kWords = 256;  // sums of bytes that 16 bits hold
  const Saturate saturate(args.range);
  const __m512 multiplier = _mm512_set1_ps(args.multiplier);
  const __m512i offset = _mm512_set1_epi32(-static_cast<std::int32_t>(args.window_count) * args.x_zero);
  const __m512i zero = _mm512_setzero_si512();
  for_each(args, [&](const auto &window) {
    __m512i sum[4] = {offset, offset, offset, offset};
    for (std::size_t w = 0; w < args.window_count;) {
      const std::size_t end = args.window_count - w < kWords ? args.window_count : w + kWords;
      __m512i lo = zero, hi = zero;
      for (; w < end; ++w) {
        const __m512i x = window(w);
        lo = _mm512_add_epi16(lo, _mm512_unpacklo_epi8(x, zero));
        hi = _mm512_add_epi16(hi, _mm512_unpackhi_epi8(x, zero));
      }
      sum[0] = _mm512_add_epi32(sum[0], _mm512_unpacklo_epi16(lo, zero));
      sum[1] = _mm512_add_epi32(sum[1], _mm512_unpackhi_epi16(lo, zero));
      sum[2] = _mm512_add_epi32(sum[2], _mm512_unpacklo_epi16(hi, zero));
      sum[3] = _mm512_add_epi32(sum[3], _mm512_unpackhi_epi16(hi, zero));
    }
    unroll<4>([&](auto v) { sum[v] = saturate.round_any(scaled(sum[v], multiplier)); });
    return saturate.bytes(saturate.words(sum[0], sum[1]), saturate.words(sum[2], sum[3]));
  });
}

}  // namespace qtn::kernels::pool_avx512
