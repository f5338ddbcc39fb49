// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution by strips: a few columns of outputs, all rows of a band, one block of channels. Where a strip
// touches the border of the picture, or pixels share vectors, its pixels are gathered first; all others are read where
// they lie. A row outside the picture is one pixel of zero points, read over and over.
//
// What differs between instruction sets is one type `V`, made for the channels of a block:
//
//   Vector, Weight, kTaps, kLanes   of bytes; of packed weights, how many a dword holds; 128-bit lanes of a vector
//   kShift                          what dot() takes off every byte
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

#include "kernels/depthwise/blocks.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels {
namespace {

/// A row of pixels under a strip.
struct Row {
  const std::uint8_t *x;
  std::ptrdiff_t out, tap;  ///< bytes from output to output and from tap to tap
};

/// One block of channels of a band of rows.
template <class V, int pixels>
class Strips {
 public:
  using Layout = Blocks<typename V::Weight, V::kTaps, V::kLanes, V::kShift>;
  static constexpr std::ptrdiff_t kVector = Layout::kVector;

  /// Rows of a band: what is gathered for one fits the first level of cache.
  static std::ptrdiff_t band_rows(const DepthwiseWindow &w) {
    constexpr std::ptrdiff_t kVectors = (24 << 10) / kVector;
    const std::ptrdiff_t width = in_columns(w, V::kOuts), more = in_rows(w, 1) - w.stride[0];
    const std::ptrdiff_t rows = (kVectors - more * width) / (w.stride[0] * width + 1);
    return rows > 1 ? rows : 1;
  }

  /// A pixel of zero points, the pixels of a strip, a vector for each row of outputs, and the rows of a strip.
  static std::size_t scratch_bytes(const DepthwiseWindow &w) {
    const std::ptrdiff_t rows = band_rows(w);
    return static_cast<std::size_t>((1 + in_rows(w, rows) * in_columns(w, V::kOuts) + rows) * kVector) +
           static_cast<std::size_t>(in_rows(w, rows) + 1) * sizeof(Row);
  }

  Strips(const DepthwiseArgs &args, const char *packed, std::size_t first, std::size_t used, std::ptrdiff_t first_row,
         std::ptrdiff_t rows)
      : args_(args),
        v_(args.range, used),
        packed_(packed),
        bias_(packed + Layout::bias_at(args.window)),
        steps_(static_cast<std::ptrdiff_t>(Layout::steps(args.window))),
        first_(static_cast<std::ptrdiff_t>(first)),
        first_row_(first_row),
        rows_(rows),
        outside_(static_cast<std::uint8_t *>(args.scratch)),
        gathered_(outside_ + kVector),
        halves_(static_cast<char *>(args.scratch) +
                (1 + in_rows(args.window, band_rows(args.window)) * in_columns(args.window, V::kOuts)) * kVector),
        strip_(reinterpret_cast<Row *>(halves_ + band_rows(args.window) * kVector)) {}

  void run() const {
    if constexpr (requires { V::kRolls; })
      if (rolls(args_.window)) return roll_strips();
    if (is_adjacent(args_.window))
      run_strips<true>();
    else
      run_strips<false>();
  }

 private:
  using Vector = typename V::Vector;
  using Words = typename V::Words;
  static constexpr int kPairs = V::kTaps / 2;

  static std::ptrdiff_t in_rows(const DepthwiseWindow &w, std::ptrdiff_t rows) {
    return (rows - 1) * w.stride[0] + (w.kernel[0] - 1) * w.dilation[0] + 1;
  }

  /// Under `outs` neighbouring outputs, for whole steps.
  static std::ptrdiff_t in_columns(const DepthwiseWindow &w, int outs) {
    const std::ptrdiff_t taps = static_cast<std::ptrdiff_t>(Layout::steps(w)) * V::kTaps;
    return is_adjacent(w) ? outs - 2 + taps : (outs - 1) * w.stride[1] + (taps - 1) * w.dilation[1] + 1;
  }

  static bool rolls(const DepthwiseWindow &w) {
    return is_adjacent(w) && w.kernel[0] == 3 && w.kernel[1] == 3 && w.stride[0] == 1 && w.dilation[0] == 1;
  }

  void roll_strips() const {
    const V v = v_;  // this and the others: a store of bytes may change a member
    const std::ptrdiff_t pixel = args_.y_pixel, row = args_.columns * pixel;
    for (std::ptrdiff_t c = 0; c < args_.columns; c += 2 * pixels) {
      find_rows(c, 2);
      const std::ptrdiff_t left = args_.columns - c;
      v.roll(
          strip_, rows_, packed_, halves_, output(c),
          row, [=](std::uint8_t * y, int out, Vector result) __attribute__((always_inline)) {
            unroll<pixels>([&](auto p) {
              const int column = 2 * p + out;
              if (column < left) v.template put<p, pixels>(y + column * pixel, result);
            });
          });
    }
  }

  template <bool adjacent>
  void run_strips() const {
    constexpr int kHalf = V::kOuts > 2 ? V::kOuts / 2 : V::kOuts;
    std::ptrdiff_t c = 0;
    for (; args_.columns - c > kHalf * pixels; c += V::kOuts * pixels) run_strip<adjacent, V::kOuts>(c);
    if (c < args_.columns) run_strip<adjacent, kHalf>(c);
  }

  template <bool adjacent, int outs>
  [[gnu::noinline]] void run_strip(std::ptrdiff_t c) const {
    find_rows(c, outs);
    const DepthwiseWindow &w = args_.window;
    const V v = v_;
    std::uint8_t *y = output(c);
    const Row *top = strip_;
    for (std::ptrdiff_t r = rows_; r > 0; --r, y += args_.columns * args_.y_pixel, top += w.stride[0]) {
      Vector acc[outs][4];
      unroll<4>([&](auto i) {
        const Vector b = V::load(bias_ + i * kVector);
        unroll<outs>([&](auto o) { acc[o][i] = b; });
      });
      const char *weights = packed_;
      const Row *row = top;
      for (std::ptrdiff_t ky = w.kernel[0]; ky > 0; --ky, row += w.dilation[0])
        weights = adjacent ? add_adjacent(acc, *row, weights) : add_apart(acc, *row, weights);
      unroll<outs>([&](auto o) {
        put<outs>(v, y + o * args_.y_pixel, args_.columns - c - o, v.requantized(acc[o], bias_ + 4 * kVector));
      });
    }
  }

  std::uint8_t *output(std::ptrdiff_t c) const {
    return args_.y + (first_row_ * args_.columns + c) * args_.y_pixel + first_;
  }

  /// The pixels of a vector that are among the `left` outputs from y on.
  template <int outs>
  [[gnu::always_inline]] void put(const V &v, std::uint8_t *y, std::ptrdiff_t left, Vector result) const {
    unroll<pixels>([&](auto p) {
      if (p * outs < left) v.template put<p, pixels>(y + p * outs * args_.y_pixel, result);
    });
  }

  /// A row of taps, in steps: the dwords of an even output serve the odd one after it.
  template <int outs>
  [[gnu::always_inline]] const char *add_adjacent(Vector (&acc)[outs][4], const Row &row, const char *w) const {
    const std::uint8_t *x = row.x;
    const std::ptrdiff_t tap = row.tap;
    for (std::ptrdiff_t step = steps_; step > 0; --step, x += V::kTaps * tap, w += 8 * kVector) {
      constexpr int kUnits = outs / 2;
      Words words[kUnits + kPairs - 1];
      unroll<kUnits + kPairs - 1>([&](auto i) {
        const std::uint8_t *p = x + 2 * i * tap;
        words[i] = Words(V::load_once(p), V::load_once(p + tap));
      });
      unroll<4>([&](auto i) __attribute__((always_inline)) {
        const Vector even = V::load_once(w + i * kVector), odd = V::load_once(w + (4 + i) * kVector);
        unroll<kUnits>([&](auto u) __attribute__((always_inline)) {
          const Vector taps = V::template dwords<i>(words + u);
          acc[2 * u][i] = V::dot(acc[2 * u][i], taps, even);
          acc[2 * u + 1][i] = V::dot(acc[2 * u + 1][i], taps, odd);
        });
      });
    }
    return w;
  }

  template <int outs>
  [[gnu::always_inline]] const char *add_apart(Vector (&acc)[outs][4], const Row &row, const char *w) const {
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

  /// What lies under the outputs from column c on, `outs` for each pixel that shares a vector.
  [[gnu::noinline]] void find_rows(std::ptrdiff_t c, int outs) const {
    const DepthwiseWindow &w = args_.window;
    const std::ptrdiff_t left = c * w.stride[1] - w.pad[1], width = in_columns(w, outs);
    const bool gathers = pixels > 1 || left < 0 || left + width > args_.width;
    const std::ptrdiff_t pixel = gathers ? kVector : args_.x_pixel, row = pixel * (gathers ? width : args_.width);
    const std::ptrdiff_t top = first_row_ * w.stride[0] - w.pad[0], count = in_rows(w, rows_);
    const std::ptrdiff_t begin = clamped(-top, count), end = clamped(args_.height - top, count);
    const std::uint8_t *image = args_.x + ((top + begin) * args_.width + left) * args_.x_pixel + first_;
    if (gathers) gather(image, end - begin, left, width, outs * w.stride[1]);
    const std::uint8_t *x = gathers ? gathered_ : image;
    for (std::ptrdiff_t i = 0; i < begin; ++i) strip_[i] = {outside_, 0, 0};
    for (std::ptrdiff_t i = begin; i < end; ++i, x += row) strip_[i] = {x, pixel * w.stride[1], pixel * w.dilation[1]};
    for (std::ptrdiff_t i = end; i <= count; ++i) strip_[i] = {outside_, 0, 0};
  }

  static std::ptrdiff_t clamped(std::ptrdiff_t v, std::ptrdiff_t hi) { return v < 0 ? 0 : v < hi ? v : hi; }

  /// Columns from `left` on, for each next pixel of a vector from `apart` further on.
  void gather(const std::uint8_t *x, std::ptrdiff_t rows, std::ptrdiff_t left, std::ptrdiff_t width,
              std::ptrdiff_t apart) const {
    const std::ptrdiff_t row = args_.width * args_.x_pixel, to_row = width * kVector;
    for (std::ptrdiff_t i = 0; i < width; ++i) {
      const std::uint8_t *from[pixels];
      std::ptrdiff_t step[pixels];
      for (int p = 0; p < pixels; ++p) {
        const std::ptrdiff_t column = i + p * apart;
        const bool inside = left + column >= 0 && left + column < args_.width;
        from[p] = inside ? x + column * args_.x_pixel : outside_;
        step[p] = inside ? row : 0;
      }
      std::uint8_t *to = gathered_ + i * kVector;
#pragma GCC unroll 4
      for (std::ptrdiff_t r = 0; r < rows; ++r, to += to_row) {
        V::store(to, V::gathered(from));
        for (int p = 0; p < pixels; ++p) from[p] += step[p];
      }
    }
  }

  const DepthwiseArgs &args_;
  V v_;
  const char *packed_, *bias_;
  std::ptrdiff_t steps_;
  std::ptrdiff_t first_, first_row_, rows_;
  std::uint8_t *outside_, *gathered_;
  char *halves_;
  Row *strip_;
};

template <class V>
void run_depthwise(const DepthwiseArgs &args) {
  using Layout = typename Strips<V, 1>::Layout;
  V::store(args.scratch, V::fill(args.outside));
  const std::ptrdiff_t band = Strips<V, 1>::band_rows(args.window), end = args.first_row + args.rows;
  for (std::ptrdiff_t row = args.first_row; row < end; row += band) {
    const std::ptrdiff_t rows = end - row < band ? end - row : band;
    const char *packed = static_cast<const char *>(args.packed);
    Layout::for_each(args.channels, [&](int pixels, std::size_t first, std::size_t used) {
      if (pixels == 1) Strips<V, 1>(args, packed, first, used, row, rows).run();
      if constexpr (V::kLanes >= 2)
        if (pixels == 2) Strips<V, 2>(args, packed, first, used, row, rows).run();
      if constexpr (V::kLanes == 4)
        if (pixels == 4) Strips<V, 4>(args, packed, first, used, row, rows).run();
      packed += Layout::block_bytes(args.window);
    });
  }
}

}  // namespace
}  // namespace qtn::kernels
