// SPDX-License-Identifier: Apache-2.0
// A convolution as matrix products: patches of the input are laid out as columns, a block of output positions at a
// time.
#pragma once

#include <algorithm>

#include "base/counted.hpp"
#include "base/parallel.hpp"
#include "blas/gemm.hpp"
#include "ops/common/window.hpp"
#include "ops/op.hpp"

namespace qtn::ops {

struct Convolution {
  std::int64_t images, channels, filters, groups;
  Window window;  ///< lifted

  std::int64_t in_size() const { return window.in[0] * window.in[1] * window.in[2]; }
  std::int64_t out_size() const { return window.outputs_count(); }
  std::int64_t patch() const { return channels / groups * window.taps_count(); }

  /// 1x1 at stride 1 without padding: the input is the matrix of columns.
  bool pointwise() const {
    return window.taps_count() == 1 && window.in == window.out && window.stride == Window::Dims{1, 1, 1} &&
           window.pad_begin == Window::Dims{0, 0, 0};
  }
};

/// The convolution of a checked call of Conv.
Convolution convolution_of(const Call &call);

/// The tap at `row`, where the taps of channels are rows.
inline Window::Dims tap_at(const Window &w, std::int64_t row) {
  const std::int64_t k = row % w.taps_count();
  return {k / w.kernel[2] / w.kernel[1], k / w.kernel[2] % w.kernel[1], k % w.kernel[2]};
}

/// One tap of one channel for output positions [begin, end): row[i] = x at that tap minus zero; 0 in the padding.
template <class T, class S>
void tap_row(const Window &w, const S *x, S zero, const Window::Dims &tap, std::int64_t begin, std::int64_t end,
             T *row) {
  const Span valid = w.outputs(2, tap[2]);
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t o2 = at % w.out[2], line = at / w.out[2], o1 = line % w.out[1], o0 = line / w.out[1];
    const std::int64_t stop = std::min(w.out[2], o2 + end - at);
    const std::int64_t i0 = o0 * w.stride[0] - w.pad_begin[0] + tap[0] * w.dilation[0];
    const std::int64_t i1 = o1 * w.stride[1] - w.pad_begin[1] + tap[1] * w.dilation[1];
    const bool inside = i0 >= 0 && i0 < w.in[0] && i1 >= 0 && i1 < w.in[1];
    const std::int64_t first = inside ? std::clamp(valid.begin, o2, stop) : stop;
    const std::int64_t last = inside ? std::clamp(valid.end, first, stop) : stop;
    T *to = row + (at - begin) - o2;
    std::fill(to + o2, to + first, T(0));
    const std::int64_t line_offset = (i0 * w.in[1] + i1) * w.in[2] + tap[2] * w.dilation[2] - w.pad_begin[2];
    for (std::int64_t o = first; o < last; ++o)
      to[o] = static_cast<T>(x[line_offset + o * w.stride[2]]) - static_cast<T>(zero);
    std::fill(to + last, to + stop, T(0));
    at += stop - o2;
  }
}

/// y [image][filter][position] += sum over the group's taps of weight * (x - zero).
template <class S>
void convolve(const Convolution &conv, const S *x, S zero, const double *weight, double *y) {
  const Window &w = conv.window;
  const std::int64_t patch = conv.patch(), positions = conv.out_size(), filters = conv.filters / conv.groups;
  const std::int64_t taps = w.taps_count(), group_channels = conv.channels / conv.groups;
  if (positions == 0 || filters == 0) return;
  // The size of a block follows from shapes alone: results must not depend on the number of threads.
  constexpr std::int64_t kColumns = 1 << 20;
  const std::int64_t block =
      std::clamp<std::int64_t>(kColumns / std::max<std::int64_t>(patch, 1), 64, std::max<std::int64_t>(positions, 64));
  CountedVector<double> columns(static_cast<std::size_t>(patch * std::min(block, positions)));
  for (std::int64_t image_group = 0; image_group < conv.images * conv.groups; ++image_group) {
    const S *from = x + image_group * group_channels * conv.in_size();
    const double *filter = weight + image_group % conv.groups * filters * patch;
    double *to = y + image_group * filters * positions;
    for (std::int64_t begin = 0; begin < positions; begin += block) {
      const std::int64_t end = std::min(positions, begin + block), width = end - begin;
      parallel_for(static_cast<std::size_t>(patch), [&](std::size_t index) {
        const auto row = static_cast<std::int64_t>(index);
        tap_row(w, from + row / taps * conv.in_size(), zero, tap_at(w, row), begin, end, columns.data() + row * width);
      });
      blas::gemm(filters, width, patch, 1.0, filter, {patch}, columns.data(), {width}, 1.0, to + begin, positions);
    }
  }
}

}  // namespace qtn::ops
