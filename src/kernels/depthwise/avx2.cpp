// SPDX-License-Identifier: Apache-2.0
// Two taps of a channel are the two int16 of one dword: unpacking interleaves and widens, and vpmaddwd is exact.
#include "kernels/avx2.hpp"

#include "kernels/depthwise/blocks.hpp"
#include "kernels/depthwise/depthwise.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels::depthwise_avx2_2tap {
namespace {

using Layout = Blocks<std::int16_t, 2, 2>;

/// Where each of the pixels that share a vector lies, in bytes.
template <int pixels>
struct Offsets {
  std::ptrdiff_t at[pixels];
};

template <int pixels>
__m256i load_pixels(const std::uint8_t *p, const Offsets<pixels> &o) {
  if constexpr (pixels == 1) return load(p + o.at[0]);
  const auto lane = [&](int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i *>(p + o.at[i])); };
  if constexpr (pixels == 2) return _mm256_inserti128_si256(_mm256_castsi128_si256(lane(0)), lane(1), 1);
}

template <int pixels>
void store_pixels(std::uint8_t *y, const Offsets<pixels> &o, __m256i v, std::size_t used) {
  constexpr std::size_t kWidth = 32 / pixels;
  if (used == kWidth) {
    if constexpr (pixels == 1) store(y + o.at[0], v);
    if constexpr (pixels == 2) {
      _mm_storeu_si128(reinterpret_cast<__m128i *>(y + o.at[0]), _mm256_castsi256_si128(v));
      _mm_storeu_si128(reinterpret_cast<__m128i *>(y + o.at[1]), _mm256_extracti128_si256(v, 1));
    }
    return;
  }
  alignas(32) char bytes[32];
  store(bytes, v);
  for (int i = 0; i < pixels; ++i) __builtin_memcpy(y + o.at[i], bytes + 16 * i, used);
}

/// One block of channels, for all pixels of the run.
template <int pixels>
class Block {
 public:
  Block(const DepthwiseArgs &args, const char *packed, std::size_t first, std::size_t used)
      : args_(args),
        weights_(reinterpret_cast<const __m256i *>(packed)),
        bias_(reinterpret_cast<const __m256i *>(packed + Layout::bias_at(args.tap_count))),
        first_(first),
        used_(used),
        saturate_(args.range) {}

  void run() const {
    for (std::size_t p = 0; p < args_.pixels; p += pixels) run_vector(p);
  }

 private:
  /// One vector of outputs. A last vector that is not full repeats the last pixel.
  void run_vector(std::size_t p) const {
    Offsets<pixels> from, to;
    for (int i = 0; i < pixels; ++i) {
      const std::size_t pixel = p + static_cast<std::size_t>(i);
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(pixel < args_.pixels ? pixel : args_.pixels - 1);
      from.at[i] = at * args_.pixel_step + static_cast<std::ptrdiff_t>(first_);
      to.at[i] = at * args_.ldy + static_cast<std::ptrdiff_t>(first_);
    }
    const __m256i zero = _mm256_setzero_si256();
    __m256i acc[4];
    unroll<4>([&](auto v) { acc[v] = load(bias_ + v); });
    const __m256i *w = weights_;
    const auto add = [&](__m256i t0, __m256i t1) {
      const __m256i lo = _mm256_unpacklo_epi8(t0, t1), hi = _mm256_unpackhi_epi8(t0, t1);
      const __m256i pairs[4] = {_mm256_unpacklo_epi8(lo, zero), _mm256_unpackhi_epi8(lo, zero),
                                _mm256_unpacklo_epi8(hi, zero), _mm256_unpackhi_epi8(hi, zero)};
      unroll<4>([&](auto v) { acc[v] = _mm256_add_epi32(acc[v], _mm256_madd_epi16(pairs[v], load(w + v))); });
      w += 4;
    };
    const std::uint8_t *const *tap = args_.taps, *const *end = tap + args_.tap_count;
    for (; end - tap >= 2; tap += 2) add(load_pixels(tap[0], from), load_pixels(tap[1], from));
    if (tap != end) add(load_pixels(tap[0], from), zero);
    store_pixels(args_.y, to, requantized(acc), used_);
  }

  __m256i requantized(const __m256i (&acc)[4]) const {
    const auto real = [&](int v) { return saturate_.round(scaled(acc[v], _mm256_castsi256_ps(load(bias_ + 4 + v)))); };
    return saturate_.bytes(saturate_.words(real(0), real(1)), saturate_.words(real(2), real(3)));
  }

  const DepthwiseArgs &args_;
  const __m256i *weights_, *bias_;
  std::size_t first_, used_;
  Saturate saturate_;
};

}  // namespace

std::size_t packed_bytes(std::size_t taps, std::size_t channels) { return Layout::packed_bytes(taps, channels); }
void pack(void *packed, const DepthwiseWeights &w) { Layout::pack(packed, w); }

void run(const DepthwiseArgs &args) {
  const char *packed = static_cast<const char *>(args.packed);
  Layout::for_each(args.channels, [&](int pixels, std::size_t first, std::size_t used) {
    if (pixels == 1) Block<1>(args, packed, first, used).run();
    if (pixels == 2) Block<2>(args, packed, first, used).run();
    packed += Layout::block_bytes(args.tap_count);
  });
}

}  // namespace qtn::kernels::depthwise_avx2_2tap
