// SPDX-License-Identifier: Apache-2.0
// Rows and columns of floats on grids of 8 bits that their own ranges give.
#pragma once

#include "kernels/rows/lanes.hpp"
#include "kernels/rows/own_grid.hpp"

namespace qtn::kernels {
namespace {

/// The low bytes of integers.
template <int bytes>
struct LowBytes {
  using Ints = typename Functions<bytes>::Ints;
  [[gnu::always_inline]] static void store(std::uint8_t *to, Ints v) {
#if defined(__AVX512F__)
    if constexpr (bytes == 64)
      return _mm_storeu_si128(reinterpret_cast<__m128i *>(to), _mm512_cvtepi32_epi8(__m512i(v)));
#endif
#if defined(__AVX2__)
    if constexpr (bytes == 32) {
      const __m256i first = _mm256_set1_epi32(0x0c080400);
      const __m256i both = _mm256_shuffle_epi8(__m256i(v), first);
      const std::int64_t low = _mm256_extract_epi32(both, 0), high = _mm256_extract_epi32(both, 4);
      const std::int64_t all = (low & 0xffffffff) | high << 32;
      return static_cast<void>(__builtin_memcpy(to, &all, sizeof all));
    }
#elif defined(__aarch64__)
    if constexpr (bytes == 16) {
      const uint16x4_t words = vmovn_u32(vreinterpretq_u32_s32(int32x4_t(v)));
      const uint8x8_t narrow = vmovn_u16(vcombine_u16(words, words));
      return vst1_lane_u32(reinterpret_cast<std::uint32_t *>(to), vreinterpret_u32_u8(narrow), 0);
    }
#endif
    for (std::size_t i = 0; i < Functions<bytes>::kCount; ++i) to[i] = static_cast<std::uint8_t>(v[i]);
  }
};

template <int bytes>
struct RowBytes {
  using V = Functions<bytes>;
  using Floats = typename V::Floats;
  using Ints = typename V::Ints;
  static constexpr std::size_t kCount = V::kCount;

  /// rint(x) for |x| below 2^22.
  [[gnu::always_inline]] static Ints rounded(Floats x) {
    constexpr float kRound = 0x1.8p23f;
    constexpr std::int32_t kRoundBits = 0x4b400000;
    return V::bits(x + kRound) - kRoundBits;
  }

  /// Calls f(vector, place, count) for a row, whose last vector is filled up with zeros.
  template <class F>
  [[gnu::always_inline]] static void each(const float *x, const float *less, std::size_t columns, const F &f) {
    std::size_t i = 0;
    for (; i + kCount <= columns; i += kCount) {
      Floats v = V::load(x + i);
      if (less) v -= V::load(less + i);
      f(v, i, kCount);
    }
    if (i == columns) return;
    float rest[2][kCount] = {};
    __builtin_memcpy(rest[0], x + i, (columns - i) * sizeof(float));
    if (less) __builtin_memcpy(rest[1], less + i, (columns - i) * sizeof(float));
    f(V::load(rest[0]) - V::load(rest[1]), i, columns - i);
  }

  static constexpr auto kLarger = [](auto a, auto b) __attribute__((always_inline)) { return b > a ? b : a; };
  static constexpr auto kSmaller = [](auto a, auto b) __attribute__((always_inline)) { return b < a ? b : a; };
  static constexpr auto kSum = [](auto a, auto b) __attribute__((always_inline)) { return a + b; };

  /// As integers, magnitudes of floats are in the order of the floats, and those of NaN above all.
  [[gnu::always_inline]] static Ints magnitude_bits(Floats v) { return V::bits(v) & 0x7fffffff; }

  [[gnu::always_inline]] static void store(std::uint8_t *q, Ints v, std::size_t count) {
    if (count == kCount) return LowBytes<bytes>::store(q, v);
    std::uint8_t rest[kCount];
    LowBytes<bytes>::store(rest, v);
    __builtin_memcpy(q, rest, count);
  }

  static OwnGrid grid_of_row(const RowBytesArgs &args, const float *x) {
    Ints peak{};
    Floats lo{}, hi{};
    each(
        x, args.less, args.columns, [&](Floats v, std::size_t, std::size_t) __attribute__((always_inline)) {
          peak = kLarger(peak, magnitude_bits(v));
          lo = kSmaller(lo, v);
          hi = kLarger(hi, v);
        });
    const float most = __builtin_bit_cast(float, folded<std::int32_t>(peak, kLarger));
    if (!args.zero || !std::isfinite(most)) return own_grid(most);
    return own_grid(folded<float>(lo, kSmaller), folded<float>(hi, kLarger));
  }

  static void rows(const RowBytesArgs &args) {
    const float *x = args.x;
    std::uint8_t *q = args.q;
    for (std::size_t r = 0; r < args.rows; ++r, x += args.x_row, q += args.columns) {
      const OwnGrid grid = grid_of_row(args, x);
      args.scale[r] = grid.scale;
      if (args.zero) args.zero[r] = grid.zero;
      const auto least = static_cast<float>(-grid.zero), most = least + 255;
      Ints sum{};
      each(
          x, args.less, args.columns, [&](Floats v, std::size_t at, std::size_t count) __attribute__((always_inline)) {
            Floats steps = v * grid.inverse;
            if (args.zero) steps = V::at_most(V::at_least(steps, least), most);
            const Ints integers = rounded(steps);
            sum += integers;
            store(q + at, integers + grid.zero, count);
          });
      if (args.sums) args.sums[r] = folded<std::int32_t>(sum, kSum);
    }
  }

  /// Up to kCount columns.
  static void columns_at(const ColumnBytesArgs &args, std::size_t first, std::size_t count) {
    const auto row = [&](std::size_t r) __attribute__((always_inline)) {
      const float *x = args.x + static_cast<std::ptrdiff_t>(r) * args.x_row + first;
      if (count == kCount) return V::load(x);
      float some[kCount] = {};
      __builtin_memcpy(some, x, count * sizeof(float));
      return V::load(some);
    };
    Ints peaks{};
    for (std::size_t r = 0; r < args.rows; ++r) peaks = kLarger(peaks, magnitude_bits(row(r)));
    float inverses[kCount], magnitudes[kCount];
    V::store(magnitudes, V::floats(peaks));
    for (std::size_t c = 0; c < kCount; ++c) {
      const OwnGrid grid = own_grid(magnitudes[c]);
      inverses[c] = grid.inverse;
      if (c < count) args.scale[first + c] = grid.scale;
    }
    const Floats inverse = V::load(inverses);
    auto *q = reinterpret_cast<std::uint8_t *>(args.q) + first;
    for (std::size_t r = 0; r < args.rows; ++r, q += args.columns) store(q, rounded(row(r) * inverse), count);
  }

  static void columns(const ColumnBytesArgs &args) {
    for (std::size_t c = 0; c < args.columns; c += kCount)
      columns_at(args, c, args.columns - c < kCount ? args.columns - c : kCount);
  }

  /// What softmax_rows() gives, on the grid of each row: its largest element is that of 1.
  static void score(const ScoreBytesArgs &args) {
    const ScoreRowsArgs &s = args.scores;
    using R = Rows<bytes>;
    constexpr std::size_t kMost = 16, kFloats = 4096;  // which stay in the first level of cache
    const std::size_t fit = kFloats / s.columns, block = fit < 1 ? 1 : fit > kMost ? kMost : fit;
    const auto run = [&](const auto &f) {
      float tops[kMost], shares[kMost];
      for (std::size_t first = 0; first < s.rows; first += block) {
        const std::size_t count = s.rows - first < block ? s.rows - first : block;
        const auto row = [&](std::size_t r) { return s.x + static_cast<std::ptrdiff_t>(first + r) * s.row; };
        for (std::size_t r = 0; r < count; ++r)
          tops[r] = R::template change<bytes>(row(r), row(r), s.columns, first + r, f);
        for (std::size_t r = 0; r < count; ++r)
          shares[r] = static_cast<float>(1 / R::exponentials(row(r), row(r), s.columns, tops[r]).total());
        for (std::size_t r = 0; r < count; ++r) {
          const OwnGrid grid = own_grid(0, shares[r]);
          args.scale[first + r] = grid.scale;
          std::uint8_t *q = args.q + static_cast<std::ptrdiff_t>(first + r) * args.q_row;
          each(
              row(r), nullptr, s.columns, [&](Floats v, std::size_t at, std::size_t n) __attribute__((always_inline)) {
                store(q + at, rounded(v * shares[r] * grid.inverse), n);
              });
        }
      }
    };
    if (s.addend) return run(typename R::ScaledAndMasked{s.factor, s.addend, s.addend_row});
    s.factor == 1 ? run(typename R::Nothing{}) : run(typename R::Scaled{s.factor});
  }
};

}  // namespace
}  // namespace qtn::kernels
