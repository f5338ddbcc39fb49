// SPDX-License-Identifier: Apache-2.0
#include "ops/common/conv_gradient.hpp"

#include "ops/common/gradient.hpp"
#include "ops/common/lane_tasks.hpp"

namespace qtn::ops {
namespace {

/// Columns of some channels at some positions stay in a cache of this size.
constexpr std::int64_t kColumns = 1 << 16;

/// One position and one group, as where features were averaged: images are the rows of a matrix.
bool is_product(const Convolution &conv) { return conv.pointwise() && conv.in_size() == 1 && conv.groups == 1; }

/// The channels of a group in blocks, each with all its taps at a time.
struct Blocks {
  explicit Blocks(const Convolution &conv)
      : taps(conv.window.taps_count()), channels(conv.channels / conv.groups), positions(conv.out_size()) {
    // Products of few rows are slow; those of many positions go through a smaller part of them at a time.
    constexpr std::int64_t kRows = 64, kWidth = 256;
    const std::int64_t rows = std::max(kRows, kColumns / std::clamp<std::int64_t>(positions, 1, kColumns));
    block = std::clamp<std::int64_t>(rows / taps, 1, std::max<std::int64_t>(channels, 1));
    count = (channels + block - 1) / block;
    width = std::min(positions, std::max(kWidth, kColumns / (block * taps)));
  }

  std::int64_t taps, channels, positions;
  std::int64_t block, count;  ///< channels of a block, blocks
  std::int64_t width;         ///< positions at a time
};

/// The inverse of tap_row(): adds row[i] to x at that tap of position begin + i.
void add_tap_row(const Window &w, const float *row, const Window::Dims &tap, std::int64_t begin, std::int64_t end,
                 float *x) {
  const Span valid = w.outputs(2, tap[2]);
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t o2 = at % w.out[2], line = at / w.out[2], o1 = line % w.out[1], o0 = line / w.out[1];
    const std::int64_t stop = std::min(w.out[2], o2 + end - at);
    const std::int64_t i0 = o0 * w.stride[0] - w.pad_begin[0] + tap[0] * w.dilation[0];
    const std::int64_t i1 = o1 * w.stride[1] - w.pad_begin[1] + tap[1] * w.dilation[1];
    if (i0 >= 0 && i0 < w.in[0] && i1 >= 0 && i1 < w.in[1]) {
      const float *from = row + (at - begin) - o2;
      const std::int64_t line_offset = (i0 * w.in[1] + i1) * w.in[2] + tap[2] * w.dilation[2] - w.pad_begin[2];
      for (std::int64_t o = std::max(valid.begin, o2); o < std::min(valid.end, stop); ++o)
        x[line_offset + o * w.stride[2]] += from[o];
    }
    at += stop - o2;
  }
}

}  // namespace

ConvRuns::ConvRuns(const Convolution &conv, ConvPasses passes) : conv_(conv) {
  if (!conv.pointwise() && fits_planes(conv)) planes_.emplace(conv, passes);
}

void ConvRuns::forward(const float *x, const float *weight, float *y, Scratch &scratch) const {
  if (planes_) return planes_->forward(x, weight, y, scratch);
  const Convolution &conv = conv_;
  if (is_product(conv))
    return blas::gemm(conv.images, conv.filters, conv.channels, 1.0f, x, {conv.channels}, weight, {conv.channels, true},
                      0.0f, y, conv.filters);
  const Window &w = conv.window;
  const std::int64_t filters = conv.filters / conv.groups, patch = conv.patch(), positions = conv.out_size();
  const std::int64_t channels = conv.channels / conv.groups, in = conv.in_size();
  const bool direct = conv.pointwise();
  constexpr std::int64_t kWidth = 64;
  const std::int64_t width =
      direct ? std::max<std::int64_t>(positions, 1)
             : std::clamp(kColumns / std::max<std::int64_t>(patch, 1), kWidth, std::max(kWidth, positions));
  const std::int64_t blocks = (positions + width - 1) / width, size = direct ? 0 : patch * width;
  float *memory = scratch_tensor(scratch, {size * current_threads()}).as<float>();
  for_tasks(conv.images * conv.groups * blocks, memory, size, [&](std::int64_t task, float *columns) {
    const std::int64_t image_group = task / blocks, begin = task % blocks * width;
    const std::int64_t end = std::min(positions, begin + width), count = end - begin;
    const float *from = x + image_group * channels * in;
    for (std::int64_t row = 0; row < patch && !direct; ++row)
      tap_row(w, from + row / w.taps_count() * in, 0.0f, tap_at(w, row), begin, end, columns + row * count);
    blas::gemm(filters, count, patch, 1.0f, weight + image_group % conv.groups * filters * patch, {patch},
               direct ? from : columns, {count}, 0.0f, y + image_group * filters * positions + begin, positions);
  });
}

void ConvRuns::add_bias(const float *bias, float *y) const {
  const auto filters = static_cast<std::size_t>(conv_.filters), size = static_cast<std::size_t>(conv_.out_size());
  parallel_for(static_cast<std::size_t>(conv_.images) * filters, [&](std::size_t plane) {
    const float addend = bias[plane % filters];
    float *at = y + plane * size;
    for (std::size_t i = 0; i < size; ++i) at[i] += addend;
  });
}

void ConvRuns::input_gradient(const float *weight, const float *dy, float *dx, bool adds, Scratch &scratch) const {
  if (planes_) return planes_->input_gradient(weight, dy, dx, adds, scratch);
  const Convolution &conv = conv_;
  const float kept = adds ? 1.0f : 0.0f;
  if (is_product(conv))
    return blas::gemm(conv.images, conv.channels, conv.filters, 1.0f, dy, {conv.filters}, weight, {conv.channels}, kept,
                      dx, conv.channels);
  const Blocks b(conv);
  const Window &w = conv.window;
  const std::int64_t filters = conv.filters / conv.groups, patch = conv.patch(), in = conv.in_size();
  const bool direct = conv.pointwise();
  const std::int64_t size = direct ? 0 : b.block * b.taps * b.width;
  float *memory = scratch_tensor(scratch, {size * current_threads()}).as<float>();
  for_tasks(conv.images * conv.groups * b.count, memory, size, [&](std::int64_t task, float *columns) {
    const std::int64_t image_group = task / b.count, first = task % b.count * b.block;
    const std::int64_t rows = std::min(b.block, b.channels - first) * b.taps;
    const float *matrix = weight + image_group % conv.groups * filters * patch + first * b.taps;
    const float *from = dy + image_group * filters * b.positions;
    float *to = dx + (image_group * b.channels + first) * in;
    if (direct) return blas::gemm(rows, in, filters, 1.0f, matrix, {patch, true}, from, {in}, kept, to, in);
    if (!adds) std::fill_n(to, rows / b.taps * in, 0.0f);
    for (std::int64_t begin = 0; begin < b.positions; begin += b.width) {
      const std::int64_t end = std::min(b.positions, begin + b.width), width = end - begin;
      blas::gemm(rows, width, filters, 1.0f, matrix, {patch, true}, from + begin, {b.positions}, 0.0f, columns, width);
      for (std::int64_t row = 0; row < rows; ++row)
        add_tap_row(w, columns + row * width, tap_at(w, row), begin, end, to + row / b.taps * in);
    }
  });
}

void ConvRuns::weight_gradient(const float *x, const float *dy, float *dw, Scratch &scratch) const {
  if (planes_) return planes_->weight_gradient(x, dy, dw, scratch);
  const Convolution &conv = conv_;
  if (is_product(conv))
    return blas::gemm(conv.filters, conv.channels, conv.images, 1.0f, dy, {conv.filters, true}, x, {conv.channels},
                      0.0f, dw, conv.channels);
  const Blocks b(conv);
  const Window &w = conv.window;
  const std::int64_t filters = conv.filters / conv.groups, patch = conv.patch(), in = conv.in_size();
  const bool direct = conv.pointwise();
  const std::int64_t size = direct ? 0 : b.block * b.taps * b.width, count = conv.filters * patch;
  const std::int64_t blocks = conv.groups * b.count;
  const std::int64_t parts =
      std::clamp<std::int64_t>(kTasks / std::max<std::int64_t>(blocks, 1), 1, std::max<std::int64_t>(conv.images, 1));
  float *memory = scratch_tensor(scratch, {size * current_threads() + (parts - 1) * count}).as<float>();
  float *sums = memory + size * current_threads();
  for_tasks(blocks * parts, memory, size, [&](std::int64_t task, float *columns) {
    const std::int64_t part = task / blocks, group = task % blocks / b.count, first = task % b.count * b.block;
    const std::int64_t rows = std::min(b.block, b.channels - first) * b.taps;
    float *to = (part == 0 ? dw : sums + (part - 1) * count) + group * filters * patch + first * b.taps;
    for (std::int64_t filter = 0; filter < filters; ++filter) std::fill_n(to + filter * patch, rows, 0.0f);
    for (std::int64_t image = conv.images * part / parts; image < conv.images * (part + 1) / parts; ++image) {
      const float *planes = x + ((image * conv.groups + group) * b.channels + first) * in;
      const float *slopes = dy + (image * conv.groups + group) * filters * b.positions;
      for (std::int64_t begin = 0; begin < b.positions; begin += b.width) {
        const std::int64_t end = std::min(b.positions, begin + b.width), width = end - begin;
        for (std::int64_t row = 0; row < rows && !direct; ++row)
          tap_row(w, planes + row / b.taps * in, 0.0f, tap_at(w, row), begin, end, columns + row * width);
        blas::gemm(filters, rows, width, 1.0f, slopes + begin, {b.positions}, direct ? planes + begin : columns,
                   {direct ? in : width, true}, 1.0f, to, patch);
      }
    }
  });
  add_parts(dw, sums, parts, count);
}

}  // namespace qtn::ops
