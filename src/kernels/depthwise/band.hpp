// SPDX-License-Identifier: Apache-2.0
// One block of channels of a band of rows, and the scratch memory for it. A band is worked in strips of a few columns;
// the pixels of a strip are gathered where they have to share vectors or where the strip touches the border.
#pragma once

#include "kernels/depthwise/blocks.hpp"

namespace qtn::kernels {
namespace {

/// Where the results of a strip go: uint8 or float.
template <class Y>
struct Target {
  Y *y;
  std::ptrdiff_t row, pixel;  ///< elements
  std::ptrdiff_t left;        ///< outputs from y to the end of the row: nothing beyond is written
};

/// Rows of the input, counted from the first under a band, that are inside the image.
struct Inside {
  std::ptrdiff_t begin, end;
};

template <class V, int pixels>
class Band {
 public:
  using Layout = Blocks<typename V::Weight, V::kTaps, V::kLanes, V::kShift>;
  static constexpr std::ptrdiff_t kVector = Layout::kVector;

  /// Rows of the input under that many rows of outputs.
  static std::ptrdiff_t in_rows(const DepthwiseWindow &w, std::ptrdiff_t rows) {
    return (rows - 1) * w.stride[0] + (w.kernel[0] - 1) * w.dilation[0] + 1;
  }

  /// Columns of the input under `outs` neighbouring outputs, for whole steps.
  static std::ptrdiff_t in_columns(const DepthwiseWindow &w, int outs) {
    const std::ptrdiff_t taps = static_cast<std::ptrdiff_t>(Layout::steps(w)) * V::kTaps;
    return is_adjacent(w) ? outs - 2 + taps : (outs - 1) * w.stride[1] + (taps - 1) * w.dilation[1] + 1;
  }

  /// Rows of outputs whose scratch fits the first level of cache, but at least one.
  static std::ptrdiff_t max_rows(const DepthwiseWindow &w) {
    constexpr std::ptrdiff_t kBytes = 24 << 10;
    const std::ptrdiff_t in_row = in_columns(w, V::kOuts) * kVector + kTableRow;
    const std::ptrdiff_t rows = (kBytes - (in_rows(w, 1) - w.stride[0]) * in_row) / (w.stride[0] * in_row + kVector);
    return rows > 1 ? rows : 1;
  }

  static std::size_t scratch_bytes(const DepthwiseWindow &w) {
    const std::ptrdiff_t rows = max_rows(w), in = in_rows(w, rows);
    return static_cast<std::size_t>(kVector + table_bytes(in) + (rows + in * in_columns(w, V::kOuts)) * kVector);
  }

  /// `block` of the packed weights has channels [first, first + used); `count` rows of outputs from first_row on.
  Band(const DepthwiseArgs &call, const char *block, std::size_t first, std::size_t used, std::ptrdiff_t first_row,
       std::ptrdiff_t count)
      : args(call),
        window(call.window),
        v(call.range, used),
        channels(used),
        packed(block),
        rows(count),
        outside(scratch()),
        table(scratch() + kVector),
        results(scratch() + kVector + table_bytes(in_rows(window, rows))),
        first_(static_cast<std::ptrdiff_t>(first)),
        first_row_(first_row) {}

  Inside inside() const {
    const std::ptrdiff_t count = in_rows(window, rows), begin = -top(), end = args.height - top();
    return {begin < 0 ? 0 : begin < count ? begin : count, end < 0 ? 0 : end < count ? end : count};
  }

  /// Column ix of row r of the band, in the image or not.
  const std::uint8_t *pixel(std::ptrdiff_t r, std::ptrdiff_t ix) const {
    return args.x + (top() + r) * args.x_row + ix * args.x_pixel + first_;
  }

  template <class Y>
  Target<Y> target(std::ptrdiff_t c) const {
    return {static_cast<Y *>(args.y) + first_row_ * args.y_row + c * args.y_pixel + first_, args.y_row, args.y_pixel,
            args.columns - c};
  }

  /// The rows inside, as vectors of `width` columns from ix on, for each next pixel of a vector from `apart` further
  /// on.
  const std::uint8_t *gather(std::ptrdiff_t ix, std::ptrdiff_t width, std::ptrdiff_t apart) const {
    const Inside in = inside();
    const std::ptrdiff_t row = args.x_row, count = in.end - in.begin;
    std::uint8_t *const gathered = results + rows * kVector;
    for (std::ptrdiff_t i = 0; i < width; ++i) {
      const std::uint8_t *from[pixels];
      std::ptrdiff_t step[pixels];
      for (int p = 0; p < pixels; ++p) {
        const std::ptrdiff_t column = ix + i + p * apart;
        const bool is_inside = column >= 0 && column < args.width;
        from[p] = is_inside ? pixel(in.begin, column) : outside;
        step[p] = is_inside ? row : 0;
      }
      std::uint8_t *to = gathered + i * kVector;
#pragma GCC unroll 4
      for (std::ptrdiff_t r = 0; r < count; ++r, to += width * kVector) {
        V::store(to, V::gathered(from));
        for (int p = 0; p < pixels; ++p) from[p] += step[p];
      }
    }
    return gathered;
  }

  const DepthwiseArgs &args;
  const DepthwiseWindow &window;
  const V v;
  const std::size_t channels;
  const char *const packed;
  const std::ptrdiff_t rows;          ///< of outputs
  const std::uint8_t *const outside;  ///< a pixel of zero points
  void *const table;                  ///< for what strips tell of each row of the input, and one more
  std::uint8_t *const results;        ///< for a vector of each row of outputs

 private:
  static constexpr std::ptrdiff_t kTableRow = 64;
  static std::ptrdiff_t table_bytes(std::ptrdiff_t in_rows) { return (in_rows + 1) * kTableRow; }

  std::uint8_t *scratch() const { return static_cast<std::uint8_t *>(args.scratch); }
  std::ptrdiff_t top() const { return first_row_ * window.stride[0] - window.pad[0]; }

  const std::ptrdiff_t first_, first_row_;
};

}  // namespace
}  // namespace qtn::kernels
