// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx2.hpp"

#include "kernels/pool/pool.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels::pool_ref {
void max(const PoolArgs &args);
void average(const PoolArgs &args);
}  // namespace qtn::kernels::pool_ref

namespace qtn::kernels::pool_avx2 {
namespace {

constexpr std::size_t kVector = 32;

/// body(window(w): the bytes of window w) gives the results of 32 channels of one pixel. The last block starts early
/// enough to be whole, since AVX2 has no masked load of bytes; there must be a vector of channels.
template <class Body>
void for_each(const PoolArgs &args, const Body &body) {
  for (std::size_t p = 0; p < args.pixels; ++p) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(p) * args.pixel_step;
    std::uint8_t *y = args.y + static_cast<std::ptrdiff_t>(p) * args.ldy;
    for (std::size_t block = 0; block < args.channels; block += kVector) {
      const std::size_t c = block + kVector <= args.channels ? block : args.channels - kVector;
      const std::ptrdiff_t offset = at + static_cast<std::ptrdiff_t>(c);
      const auto window = [&](std::size_t w) { return load(args.windows[w] + offset); };
      store(y + c, body(window));
    }
  }
}

}  // namespace

void max(const PoolArgs &args) {
  if (args.channels < kVector) return pool_ref::max(args);
  for_each(args, [&](const auto &window) {
    __m256i v = window(0);
    for (std::size_t w = 1; w < args.window_count; ++w) v = _mm256_max_epu8(v, window(w));
    return v;
  });
}

void average(const PoolArgs &args) {
  if (args.channels < kVector) return pool_ref::average(args);
  constexpr std::size_t kWords = 256;  // sums of bytes that 16 bits hold
  const Saturate saturate(args.range);
  const __m256 multiplier = _mm256_set1_ps(args.multiplier);
  const __m256i offset = _mm256_set1_epi32(-static_cast<std::int32_t>(args.window_count) * args.x_zero);
  const __m256i zero = _mm256_setzero_si256();
  for_each(args, [&](const auto &window) {
    __m256i sum[4] = {offset, offset, offset, offset};
    for (std::size_t w = 0; w < args.window_count;) {
      const std::size_t end = args.window_count - w < kWords ? args.window_count : w + kWords;
      __m256i lo = zero, hi = zero;
      for (; w < end; ++w) {
        const __m256i x = window(w);
        lo = _mm256_add_epi16(lo, _mm256_unpacklo_epi8(x, zero));
        hi = _mm256_add_epi16(hi, _mm256_unpackhi_epi8(x, zero));
      }
      sum[0] = _mm256_add_epi32(sum[0], _mm256_unpacklo_epi16(lo, zero));
      sum[1] = _mm256_add_epi32(sum[1], _mm256_unpackhi_epi16(lo, zero));
      sum[2] = _mm256_add_epi32(sum[2], _mm256_unpacklo_epi16(hi, zero));
      sum[3] = _mm256_add_epi32(sum[3], _mm256_unpackhi_epi16(hi, zero));
    }
    unroll<4>([&](auto v) { sum[v] = saturate.round_any(scaled(sum[v], multiplier)); });
    return saturate.bytes(saturate.words(sum[0], sum[1]), saturate.words(sum[2], sum[3]));
  });
}

}  // namespace qtn::kernels::pool_avx2
