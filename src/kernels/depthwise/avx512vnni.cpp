// SPDX-License-Identifier: Apache-2.0
// Four taps of a channel are one dword: three levels of unpacking interleave the bytes of four vectors of 64 channels,
// and vpdpbusd does the rest with every byte of every lane in use.
#include "kernels/avx512.hpp"
#include "kernels/depthwise/blocks.hpp"
#include "kernels/depthwise/depthwise.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels::depthwise_avx512vnni_4tap {
namespace {

using Layout = Blocks<std::int8_t, 4, 4>;

/// Where each of the pixels that share a vector lies, in bytes.
template <int pixels>
struct Offsets {
  std::ptrdiff_t at[pixels];
};

/// The loads are the bottleneck, and the compiler would fold a vector into each of its uses; it cannot if asm gives it.
__m512i load_once(const void *p) {
  __m512i v = load(p);
  __asm__("" : "+v"(v));
  return v;
}

template <int pixels>
__m512i load_pixels(const std::uint8_t *p, const Offsets<pixels> &o) {
  if constexpr (pixels == 1) return load_once(p + o.at[0]);
  if constexpr (pixels == 2) {
    const auto half = [&](int i) { return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(p + o.at[i])); };
    return _mm512_inserti64x4(_mm512_castsi256_si512(half(0)), half(1), 1);
  }
  if constexpr (pixels == 4) {
    const auto lane = [&](int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i *>(p + o.at[i])); };
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(lane(0)), lane(1), 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(lane(2)), lane(3), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  }
}

/// The mask has a bit for each channel of the block.
template <int pixels>
void store_pixels(std::uint8_t *y, const Offsets<pixels> &o, __m512i v, std::uint64_t mask) {
  if constexpr (pixels == 1) _mm512_mask_storeu_epi8(y + o.at[0], _cvtu64_mask64(mask), v);
  if constexpr (pixels == 2) {
    const __mmask32 m = _cvtu32_mask32(static_cast<unsigned>(mask));
    _mm256_mask_storeu_epi8(y + o.at[0], m, _mm512_castsi512_si256(v));
    _mm256_mask_storeu_epi8(y + o.at[1], m, _mm512_extracti64x4_epi64(v, 1));
  }
  if constexpr (pixels == 4) {
    const __mmask16 m = _cvtu32_mask16(static_cast<unsigned>(mask));
    _mm_mask_storeu_epi8(y + o.at[0], m, _mm512_castsi512_si128(v));
    unroll<3>([&](auto i) {
      constexpr int lane = i + 1;
      _mm_mask_storeu_epi8(y + o.at[lane], m, _mm512_extracti32x4_epi32(v, lane));
    });
  }
}

/// The bytes of two taps side by side, channels 0 to 7 and 8 to 15 of every lane.
struct Words {
  __m512i lo, hi;

  Words(__m512i t0, __m512i t1) : lo(_mm512_unpacklo_epi8(t0, t1)), hi(_mm512_unpackhi_epi8(t0, t1)) {}
};

/// Vector v of the dwords of four taps, channels in the order of Layout.
template <int v>
__m512i dwords(const Words &t01, const Words &t23) {
  if constexpr (v == 0) return _mm512_unpacklo_epi16(t01.lo, t23.lo);
  if constexpr (v == 1) return _mm512_unpackhi_epi16(t01.lo, t23.lo);
  if constexpr (v == 2) return _mm512_unpacklo_epi16(t01.hi, t23.hi);
  if constexpr (v == 3) return _mm512_unpackhi_epi16(t01.hi, t23.hi);
}

/// One block of channels, for all pixels of the run. Everything that the loops use is copied to locals, since a store
/// of bytes may change anything else.
template <int pixels>
class Block {
 public:
  Block(const DepthwiseArgs &args, const Saturate &saturate, bool adjacent, const char *packed, std::size_t first,
        std::size_t used)
      : args_(args),
        saturate_(saturate),
        weights_(reinterpret_cast<const __m512i *>(packed)),
        shifted_(reinterpret_cast<const __m512i *>(packed + Layout::shifted_at(args.tap_count))),
        bias_(reinterpret_cast<const __m512i *>(packed + Layout::bias_at(args.tap_count))),
        first_(static_cast<std::ptrdiff_t>(first)),
        mask_(first_lanes(used)),
        adjacent_(adjacent) {}

  void run() const {
    if (!Layout::by_rows(args_.tap_count)) return args_.pixels > pixels ? run_any<2, 4>() : run_any<1, 4>();
    if (!adjacent_ || args_.pixels < 2 * pixels) return args_.pixels > pixels ? run_any<2, 3>() : run_any<1, 3>();
    // Fours, then the pair or the four that ends with the last pixel.
    const std::ptrdiff_t count = static_cast<std::ptrdiff_t>(args_.pixels);
    const std::ptrdiff_t rest = count % (4 * pixels), fours = rest > 2 * pixels && count > rest ? count : count - rest;
    if (fours > 0) run_3x3<2>(0, fours);
    if (fours < count) run_3x3<1>(fours, count);
  }

 private:
  /// body(offset in x, address in y) for pixels [begin, end), `step` at a time. The last time they start early enough
  /// to be that many: some pixels twice, to the same bytes, cost less than the rest one by one.
  template <std::ptrdiff_t step, class Body>
  [[gnu::always_inline]] void for_pixels(std::ptrdiff_t begin, std::ptrdiff_t end, Body body) const {
    const std::ptrdiff_t last = end > step ? end - step : 0, x_step = args_.pixel_step, ldy = args_.ldy, first = first_;
    std::uint8_t *y = args_.y + first;
    for (std::ptrdiff_t p = begin < last ? begin : last;; p = p + step < last ? p + step : last) {
      body(first + p * x_step, y + p * ldy);
      if (p >= last) break;
    }
  }

  /// Two neighbouring outputs from four inputs of each row, a, b, c, d, or four from six: dwords (a b c d) with weights
  /// (w0 w1 w2 0) and (0 w0 w1 w2) give two, (c d e f) the next two. Pixels that share a vector are that many apart.
  template <int pairs>
  void run_3x3(std::ptrdiff_t begin, std::ptrdiff_t end) const {
    constexpr int kOutputs = 2 * pairs;
    Offsets<pixels> from, to;
    for (int i = 0; i < pixels; ++i) from.at[i] = kOutputs * i * args_.pixel_step, to.at[i] = kOutputs * i * args_.ldy;
    const std::ptrdiff_t step = args_.pixel_step, ldy = args_.ldy;
    const std::uint8_t *const rows[3] = {args_.taps[0], args_.taps[3], args_.taps[6]};
    const __m512i *const weights = weights_, *const shifted = shifted_, *const bias = bias_;
    const std::uint64_t mask = mask_;
    const Saturate saturate = saturate_;
    for_pixels<kOutputs * pixels>(
        begin, end, [&](std::ptrdiff_t at, std::uint8_t * y) __attribute__((always_inline)) {
          __m512i acc[kOutputs][4];
          unroll<4>([&](auto v) { unroll<kOutputs>([&](auto i) { acc[i][v] = load(bias + v); }); });
          unroll<3>([&](auto r) __attribute__((always_inline)) {
            const std::uint8_t *x = rows[r] + at;
            const auto input = [&](int i) { return load_pixels(x + i * step, from); };
            const Words ab(input(0), input(1)), cd(input(2), input(3));
            const Words ef = pairs == 2 ? Words(input(4), input(5)) : cd;
            unroll<4>([&](auto v) {
              const __m512i w = load(weights + 4 * r + v), w_shifted = load(shifted + 4 * r + v);
              const __m512i abcd = dwords<v>(ab, cd), cdef = dwords<v>(cd, ef);
              acc[0][v] = dot4(acc[0][v], abcd, w);
              acc[1][v] = dot4(acc[1][v], abcd, w_shifted);
              if constexpr (pairs == 2) {
                acc[2][v] = dot4(acc[2][v], cdef, w);
                acc[3][v] = dot4(acc[3][v], cdef, w_shifted);
              }
            });
          });
          unroll<kOutputs>(
              [&](auto i) { store_pixels(y + i * ldy, to, requantized(acc[i], bias + 4, saturate), mask); });
        });
  }

  /// Any window, `group` taps in a dword: one vector of outputs, or two that share the loads of weights and hide each
  /// other's latency. Where there are fewer pixels than that, the last one is repeated.
  template <int vectors, int group>
  void run_any() const {
    Offsets<pixels> from[vectors], to[vectors];
    for (int i = 0; i < vectors * pixels; ++i) {
      const std::ptrdiff_t pixel =
          i < static_cast<std::ptrdiff_t>(args_.pixels) ? i : static_cast<std::ptrdiff_t>(args_.pixels) - 1;
      from[i / pixels].at[i % pixels] = pixel * args_.pixel_step;
      to[i / pixels].at[i % pixels] = pixel * args_.ldy;
    }
    const std::uint8_t *const *const taps = args_.taps;
    const std::size_t tap_count = args_.tap_count;
    const __m512i *const weights = weights_, *const bias = bias_;
    const std::uint64_t mask = mask_;
    const Saturate saturate = saturate_;
    for_pixels<vectors * pixels>(
        0, static_cast<std::ptrdiff_t>(args_.pixels),
        [&](std::ptrdiff_t x, std::uint8_t * y) __attribute__((always_inline)) {
          __m512i acc[vectors][4];
          unroll<4>([&](auto v) { unroll<vectors>([&](auto i) { acc[i][v] = load(bias + v); }); });
          const __m512i *w = weights;
          const auto add = [&](const std::uint8_t *const *tap, auto count) __attribute__((always_inline)) {
            __m512i weight[4];
            unroll<4>([&](auto v) { weight[v] = load_once(w + v); });
            unroll<vectors>([&](auto i) __attribute__((always_inline)) {
              const auto input = [&](int t) {
                return t < count ? load_pixels(tap[t] + x, from[i]) : _mm512_setzero_si512();
              };
              const Words t01(input(0), input(1)), t23(input(2), input(3));
              unroll<4>([&](auto v) { acc[i][v] = dot4(acc[i][v], dwords<v>(t01, t23), weight[v]); });
            });
            w += 4;
          };
          if constexpr (group == 3) {
            unroll<3>([&](auto r) { add(taps + 3 * r, Index<3>{}); });
          } else {
            std::size_t t = 0;
            for (; t + 4 <= tap_count; t += 4) add(taps + t, Index<4>{});
            if (tap_count - t == 3) add(taps + t, Index<3>{});
            if (tap_count - t == 2) add(taps + t, Index<2>{});
            if (tap_count - t == 1) add(taps + t, Index<1>{});
          }
          unroll<vectors>([&](auto i) { store_pixels(y, to[i], requantized(acc[i], bias + 4, saturate), mask); });
        });
  }

  static __m512i requantized(const __m512i (&acc)[4], const __m512i *multiplier, const Saturate &saturate) {
    const auto real = [&](int v) { return saturate.round(scaled(acc[v], _mm512_castsi512_ps(load(multiplier + v)))); };
    return saturate.bytes(saturate.words(real(0), real(1)), saturate.words(real(2), real(3)));
  }

  const DepthwiseArgs &args_;
  const Saturate &saturate_;
  const __m512i *weights_, *shifted_, *bias_;
  std::ptrdiff_t first_;
  std::uint64_t mask_;
  bool adjacent_;
};

/// Whether tap 1 of a pixel is tap 0 of the next, and so on: 3x3, stride 1, away from the border.
bool rows_adjacent(const DepthwiseArgs &args) {
  if (!Layout::by_rows(args.tap_count)) return false;
  for (int t = 0; t < 9; t += 3)
    if (args.taps[t] + args.pixel_step != args.taps[t + 1] || args.taps[t + 1] + args.pixel_step != args.taps[t + 2])
      return false;
  return true;
}

}  // namespace

std::size_t packed_bytes(std::size_t taps, std::size_t channels) { return Layout::packed_bytes(taps, channels); }
void pack(void *packed, const DepthwiseWeights &w) { Layout::pack(packed, w); }

void run(const DepthwiseArgs &args) {
  if (args.pixels == 0) return;
  const char *packed = static_cast<const char *>(args.packed);
  const Saturate saturate(args.range);
  const bool adjacent = rows_adjacent(args);
  Layout::for_each(args.channels, [&](int pixels, std::size_t first, std::size_t used) {
    if (pixels == 1) Block<1>(args, saturate, adjacent, packed, first, used).run();
    if (pixels == 2) Block<2>(args, saturate, adjacent, packed, first, used).run();
    if (pixels == 4) Block<4>(args, saturate, adjacent, packed, first, used).run();
    packed += Layout::block_bytes(args.tap_count);
  });
}

}  // namespace qtn::kernels::depthwise_avx512vnni_4tap
