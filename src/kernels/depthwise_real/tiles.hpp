// SPDX-License-Identifier: Apache-2.0
// Tiles of a few neighbouring outputs by a few vectors of channels, which stay in registers while the taps pass by. `V`
// has:
//
//   Vector, kLanes
//   kPixels, kVectors            outputs and vectors of a whole tile
//   load(p), load_part(p, n)     all lanes, or the first n and zeros
//   store(p, v), store_part(p, v, n)
//   set(x), fma(acc, a, b), clamp(v, lo, hi)
#pragma once

#include "kernels/depthwise_real/depthwise_real.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels {
namespace {

struct TapSpan {
  std::ptrdiff_t begin, end;
};

/// The taps of output `o` inside an image of `size` along an axis.
inline TapSpan taps_inside(const DepthwiseWindow &w, int axis, std::ptrdiff_t o, std::ptrdiff_t size) {
  const std::ptrdiff_t from = o * w.stride[axis] - w.pad[axis], step = w.dilation[axis];
  TapSpan taps{0, w.kernel[axis]};
  while (taps.begin < taps.end && from + taps.begin * step < 0) ++taps.begin;
  while (taps.end > taps.begin && from + (taps.end - 1) * step >= size) --taps.end;
  return taps;
}

template <class V>
class DepthwiseTiles {
 public:
  static void run(const DepthwiseRealArgs &args) {
    const DepthwiseTiles tiles(args);
    constexpr std::size_t kWide = V::kVectors * V::kLanes;
    std::size_t c = 0;
    for (; c + kWide <= args.channels; c += kWide) tiles.template rows<V::kVectors, true>(c, V::kLanes);
    for (; c < args.channels; c += V::kLanes) {
      const std::size_t left = args.channels - c;
      if (left >= V::kLanes)
        tiles.template rows<1, true>(c, V::kLanes);
      else
        tiles.template rows<1, false>(c, left);
    }
  }

 private:
  explicit DepthwiseTiles(const DepthwiseRealArgs &args) : a_(args) {
    // Outputs whose windows lie inside the image follow one another.
    while (inside_begin_ < a_.columns && !is_inside(inside_begin_)) ++inside_begin_;
    inside_end_ = a_.columns;
    while (inside_end_ > inside_begin_ && !is_inside(inside_end_ - 1)) --inside_end_;
  }

  bool is_inside(std::ptrdiff_t o) const {
    const TapSpan taps = taps_inside(a_.window, 1, o, a_.width);
    return taps.begin == 0 && taps.end == a_.window.kernel[1];
  }

  template <bool whole>
  static typename V::Vector load(const float *p, std::size_t lanes) {
    if constexpr (whole)
      return V::load(p);
    else
      return V::load_part(p, lanes);
  }

  template <int vectors, bool whole>
  void rows(std::size_t channel, std::size_t lanes) const {
    for (std::ptrdiff_t r = 0; r < a_.rows; ++r) {
      const TapSpan down = taps_inside(a_.window, 0, a_.first_row + r, a_.height);
      const std::ptrdiff_t top = (a_.first_row + r) * a_.window.stride[0] - a_.window.pad[0];
      const float *row = a_.x + top * a_.width * a_.x_pixel + channel;
      float *y = a_.y + (a_.first_row + r) * a_.columns * a_.y_pixel + channel;
      const auto single = [&](std::ptrdiff_t o) {
        const TapSpan across = taps_inside(a_.window, 1, o, a_.width);
        tile<1, vectors, whole>(row, y, o, down, across, channel, lanes);
      };
      std::ptrdiff_t o = 0;
      for (; o < inside_begin_; ++o) single(o);
      const TapSpan across{0, a_.window.kernel[1]};
      for (; o + V::kPixels <= inside_end_; o += V::kPixels)
        tile<V::kPixels, vectors, whole>(row, y, o, down, across, channel, lanes);
      unroll<V::kPixels - 1>([&](auto less) {
        if (inside_end_ - o == less + 1) {
          tile<less + 1, vectors, whole>(row, y, o, down, across, channel, lanes);
          o = inside_end_;
        }
      });
      for (; o < a_.columns; ++o) single(o);
    }
  }

  template <int pixels, int vectors, bool whole>
  [[gnu::always_inline]] void tile(const float *row, float *y, std::ptrdiff_t o, TapSpan down, TapSpan across,
                                   std::size_t channel, std::size_t lanes) const {
    using Vector = typename V::Vector;
    const DepthwiseWindow &w = a_.window;
    const std::ptrdiff_t next = w.stride[1] * a_.x_pixel;
    const float *left = row + (o * w.stride[1] - w.pad[1]) * a_.x_pixel;
    Vector acc[pixels][vectors];
    unroll<vectors>([&](auto v) {
      const Vector bias = load<whole>(a_.bias + channel + v * V::kLanes, lanes);
      unroll<pixels>([&](auto p) { acc[p][v] = bias; });
    });
    for (std::ptrdiff_t ky = down.begin; ky < down.end; ++ky) {
      const float *x = left + (ky * w.dilation[0] * a_.width + across.begin * w.dilation[1]) * a_.x_pixel;
      const float *tap = a_.weights + (ky * w.kernel[1] + across.begin) * a_.tap + channel;
      for (std::ptrdiff_t kx = across.begin; kx < across.end; ++kx, x += w.dilation[1] * a_.x_pixel, tap += a_.tap) {
        unroll<vectors>([&](auto v) {
          const Vector weight = load<whole>(tap + v * V::kLanes, lanes);
          const float *at = x + v * V::kLanes;
          unroll<pixels>([&](auto p) {
            acc[p][v] = V::fma(acc[p][v], load<whole>(at, lanes), weight);
            at += next;
          });
        });
      }
    }
    const Vector lo = V::set(a_.lo), hi = V::set(a_.hi);
    float *to = y + o * a_.y_pixel;
    unroll<pixels>([&](auto p) {
      unroll<vectors>([&](auto v) {
        const Vector result = V::clamp(acc[p][v], lo, hi);
        if constexpr (whole)
          V::store(to + v * V::kLanes, result);
        else
          V::store_part(to, result, lanes);
      });
      to += a_.y_pixel;
    });
  }

  const DepthwiseRealArgs &a_;
  std::ptrdiff_t inside_begin_ = 0, inside_end_ = 0;
};

}  // namespace
}  // namespace qtn::kernels
