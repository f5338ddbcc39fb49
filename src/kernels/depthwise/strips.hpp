// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution by strips, for any window: a few columns of outputs, all rows of a band.
//
// What differs between instruction sets is one type `V`, made for the channels of a block:
//
//   Vector, Weight, kTaps, kLanes   of bytes; of packed weights, how many a dword holds; 128-bit lanes of a vector
//   kOuts                           outputs of a strip whose accumulators fit the registers
//   load(p), load_once(p)           the second once, however often it is used
//   store(p, v)
//   fill(byte)
//   gathered(from)                  a vector of 1, 2 or 4 pixels
//   put<p, pixels>(y, v)            pixel p of those that share a vector
//   Words(a, b)                     two pixels, their bytes interleaved
//   dwords<v>(words)                vector v of the dwords of kTaps pixels
//   dot(acc, dwords, weights)
//   requantized(acc, multipliers)
#pragma once

#include <type_traits>

#include "kernels/depthwise/band.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels {
namespace {

/// How the windows of neighbouring outputs share pairs of pixels: two outputs each, one pair on, or not at all.
enum class Overlap { by_one, by_two, none };

/// A row of pixels under a strip. One outside the image is one pixel, over and over.
struct StripRow {
  const std::uint8_t *x;
  std::ptrdiff_t out, tap;  ///< bytes from output to output and from tap to tap
};

/// What lies under the outputs from column c on, `outs` for each pixel that shares a vector.
template <class V, int pixels>
[[gnu::noinline]] const StripRow *find_strip_rows(const Band<V, pixels> &band, std::ptrdiff_t c, int outs) {
  constexpr std::ptrdiff_t kVector = Band<V, pixels>::kVector;
  const DepthwiseWindow &w = band.window;
  const std::ptrdiff_t ix = c * w.stride[1] - w.pad[1], width = band.in_columns(w, outs);
  const Inside in = band.inside();
  const bool direct = pixels == 1 && ix >= 0 && ix + width <= band.args.width;
  const std::uint8_t *x = direct ? band.pixel(in.begin, ix) : band.gather(ix, width, outs * w.stride[1]);
  const std::ptrdiff_t pixel = direct ? band.args.x_pixel : kVector;
  const std::ptrdiff_t row = direct ? band.args.x_row : width * kVector, count = band.in_rows(w, band.rows);
  auto *const rows = static_cast<StripRow *>(band.table);
  for (std::ptrdiff_t i = 0; i < in.begin; ++i) rows[i] = {band.outside, 0, 0};
  for (std::ptrdiff_t i = in.begin; i < in.end; ++i, x += row)
    rows[i] = {x, pixel * w.stride[1], pixel * w.dilation[1]};
  for (std::ptrdiff_t i = in.end; i < count; ++i) rows[i] = {band.outside, 0, 0};
  return rows;
}

/// `Y`: uint8 or float.
template <class V, int pixels, class Y>
class Strips {
 public:
  explicit Strips(const Band<V, pixels> &band)
      : band_(band),
        bias_(band.packed + Layout::bias_at(band.window)),
        steps_(static_cast<std::ptrdiff_t>(Layout::steps(band.window))) {}

  void run() const {
    const DepthwiseWindow &w = band_.window;
    if (is_adjacent(w))
      run_strips<Overlap::by_one>();
    else if (w.stride[1] == 2 && w.dilation[1] == 1)
      run_strips<Overlap::by_two>();
    else
      run_strips<Overlap::none>();
  }

 private:
  using Layout = typename Band<V, pixels>::Layout;
  using Vector = typename V::Vector;
  using Words = typename V::Words;
  static constexpr std::ptrdiff_t kVector = Layout::kVector;
  static constexpr int kPairs = V::kTaps / 2;

  template <Overlap overlap>
  void run_strips() const {
    constexpr int kHalf = V::kOuts > 2 ? V::kOuts / 2 : V::kOuts, kWhole = V::kOuts * pixels;
    const std::ptrdiff_t columns = band_.args.columns, rest = columns % kWhole;
    std::ptrdiff_t c = 0;
    // The half comes first: the first strip touches the border, and the fewer pixels are gathered the better.
    if (rest > 0 && rest <= kHalf * pixels) {
      run_strip<overlap, kHalf>(c);
      c += kHalf * pixels;
    }
    for (; c < columns; c += kWhole) run_strip<overlap, V::kOuts>(c);
  }

  /// Few values are kept in locals: the compiler would find them registers at the cost of accumulators.
  template <Overlap overlap, int outs>
  [[gnu::noinline]] void run_strip(std::ptrdiff_t c) const {
    const StripRow *top = find_strip_rows(band_, c, outs);
    const DepthwiseWindow &w = band_.window;
    const V v = band_.v;
    Target<Y> to = band_.template target<Y>(c);
    for (std::ptrdiff_t r = band_.rows; r > 0; --r, to.y += to.row, top += w.stride[0]) {
      Vector acc[outs][4];
      unroll<4>([&](auto i) {
        const Vector b = V::load(bias_ + i * kVector);
        unroll<outs>([&](auto o) { acc[o][i] = b; });
      });
      const char *weights = band_.packed;
      const StripRow *row = top;
      for (std::ptrdiff_t ky = w.kernel[0]; ky > 0; --ky, row += w.dilation[0])
        weights = overlap == Overlap::none ? add_apart(acc, *row, weights) : add_pairs<overlap>(acc, *row, weights);
      unroll<outs>([&](auto o) __attribute__((always_inline)) {
        if constexpr (std::is_same_v<Y, float>) {
          put_real<outs, o>(acc[o], to);
        } else {
          const Vector result = v.requantized(acc[o], bias_ + 4 * kVector);
          unroll<pixels>([&](auto p) __attribute__((always_inline)) {
            constexpr int column = outs * p + o;
            if (column < to.left) v.template put<p, pixels>(to.y + column * to.pixel, result);
          });
        }
      });
    }
  }

  /// Output o of each pixel that shares a vector.
  template <int outs, int o>
  [[gnu::always_inline]] void put_real(const Vector (&acc)[4], const Target<float> &to) const {
    alignas(kVector) std::int32_t sums[kVector];
    unroll<4>([&](auto i) { V::store(sums + i * kVector / 4, acc[i]); });
    for (std::size_t p = 0; p < pixels; ++p)
      if (const auto column = static_cast<std::ptrdiff_t>(outs * p + o); column < to.left)
        put_pixel(to.y + column * to.pixel, sums, p);
  }

  /// Channels lie as Blocks says, four of them side by side.
  [[gnu::noinline]] void put_pixel(float *y, const std::int32_t *sums, std::size_t p) const {
    using Four = float __attribute__((vector_size(16)));
    using FourSums = std::int32_t __attribute__((vector_size(16)));
    constexpr std::size_t kFour = 4;
    const auto *multipliers = reinterpret_cast<const float *>(bias_ + 4 * kVector);
    const Four lo = band_.args.lo - Four{}, hi = band_.args.hi - Four{};
    for (std::size_t c = 0; c < band_.channels; c += kFour) {
      const std::size_t lane = c / 16 + p * V::kLanes / pixels, at = (c % 16 / kFour * V::kLanes + lane) * kFour;
      FourSums acc;
      Four multiplier;
      __builtin_memcpy(&acc, sums + at, sizeof acc);
      __builtin_memcpy(&multiplier, multipliers + at, sizeof multiplier);
      const Four real = __builtin_convertvector(acc, Four) * multiplier, raised = real < lo ? lo : real,
                 bounded = raised > hi ? hi : raised;
      if (const std::size_t left = band_.channels - c; left >= kFour)
        __builtin_memcpy(y + c, &bounded, sizeof bounded);
      else
        __builtin_memcpy(y + c, &bounded, left * sizeof(float));
    }
  }

  /// A row of taps, in steps. Dwords begin at every second pixel; those of an even output by_one serve the odd one too.
  template <Overlap overlap, int outs>
  [[gnu::always_inline]] const char *add_pairs(Vector (&acc)[outs][4], const StripRow &row, const char *w) const {
    constexpr bool kShifted = overlap == Overlap::by_one;
    constexpr int kUnits = kShifted ? outs / 2 : outs;
    const std::uint8_t *x = row.x;
    const std::ptrdiff_t tap = row.tap;
    for (std::ptrdiff_t step = steps_; step > 0; --step, x += V::kTaps * tap, w += (kShifted ? 8 : 4) * kVector) {
      Words words[kUnits + kPairs - 1];
      unroll<kUnits + kPairs - 1>([&](auto i) {
        const std::uint8_t *p = x + 2 * i * tap;
        words[i] = Words(V::load_once(p), V::load_once(p + tap));
      });
      unroll<4>([&](auto i) __attribute__((always_inline)) {
        const Vector even = V::load_once(w + i * kVector);
        const Vector odd = kShifted ? V::load_once(w + (4 + i) * kVector) : even;
        unroll<kUnits>([&](auto u) __attribute__((always_inline)) {
          constexpr int o = kShifted ? 2 * u : u;
          const Vector taps = V::template dwords<i>(words + u);
          acc[o][i] = V::dot(acc[o][i], taps, even);
          if constexpr (kShifted) acc[o + 1][i] = V::dot(acc[o + 1][i], taps, odd);
        });
      });
    }
    return w;
  }

  template <int outs>
  [[gnu::always_inline]] const char *add_apart(Vector (&acc)[outs][4], const StripRow &row, const char *w) const {
    const std::uint8_t *x = row.x;
    const std::ptrdiff_t tap = row.tap, out = row.out;
    for (std::ptrdiff_t step = steps_; step > 0; --step, x += V::kTaps * tap, w += 4 * kVector) {
      Vector weights[4];
      unroll<4>([&](auto i) { weights[i] = V::load_once(w + i * kVector); });
      const std::uint8_t *p = x;
      unroll<outs>([&](auto o) __attribute__((always_inline)) {
        Words words[kPairs];
        unroll<kPairs>(
            [&](auto i) { words[i] = Words(V::load_once(p + 2 * i * tap), V::load_once(p + (2 * i + 1) * tap)); });
        unroll<4>([&](auto i) __attribute__((always_inline)) {
          acc[o][i] = V::dot(acc[o][i], V::template dwords<i>(words), weights[i]);
        });
        p += out;
      });
    }
    return w;
  }

  const Band<V, pixels> &band_;
  const char *bias_;
  std::ptrdiff_t steps_;
};

/// All of one call: run_band(Band) for every band of rows and block of channels.
template <class V, class RunBand>
void for_bands(const DepthwiseArgs &args, RunBand run_band) {
  V::store(args.scratch, V::fill(args.outside));
  const std::ptrdiff_t max = Band<V, 1>::max_rows(args.window), end = args.first_row + args.rows;
  for (std::ptrdiff_t row = args.first_row; row < end; row += max) {
    const std::ptrdiff_t rows = end - row < max ? end - row : max;
    const char *packed = static_cast<const char *>(args.packed);
    Band<V, 1>::Layout::for_each(args.channels, [&](int pixels, std::size_t first, std::size_t used) {
      if (pixels == 1) run_band(Band<V, 1>(args, packed, first, used, row, rows));
      if constexpr (V::kLanes >= 2)
        if (pixels == 2) run_band(Band<V, 2>(args, packed, first, used, row, rows));
      if constexpr (V::kLanes == 4)
        if (pixels == 4) run_band(Band<V, 4>(args, packed, first, used, row, rows));
      packed += Band<V, 1>::Layout::block_bytes(args.window);
    });
  }
}

/// The same with strips of any window.
template <class V, class Y>
void run_strips(const DepthwiseArgs &args) {
  for_bands<V>(args, []<int pixels>(const Band<V, pixels> &band) { Strips<V, pixels, Y>(band).run(); });
}

}  // namespace
}  // namespace qtn::kernels
