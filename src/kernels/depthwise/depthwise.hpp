// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of channels-last uint8 images by int8 weights, one weight per (tap, channel), exact int32
// accumulation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.hpp"
#include "base/requantize.hpp"

namespace qtn::kernels {

/// Rows, then columns. Output o reads input o * stride - pad + k * dilation for each tap k of its kernel.
struct DepthwiseWindow {
  std::ptrdiff_t kernel[2], stride[2], dilation[2], pad[2];
};

struct DepthwiseWeights {
  const std::int8_t *w;      ///< [kernel rows][kernel columns][channels]
  const std::int32_t *bias;  ///< [channels], zero point of x folded in
  const float *multiplier;   ///< [channels], finite: to uint8: scale_x*scale_w/scale_y; to float: scale_x*scale_w
  std::size_t channels;
};

/// Some rows of outputs of one image.
struct DepthwiseArgs {
  DepthwiseWindow window;
  const std::uint8_t *x;  ///< pixel (r, c) at x + r * x_row + c * x_pixel; kReadSlack bytes after the last are read
  std::ptrdiff_t height, width, x_row, x_pixel;
  std::uint8_t outside;                     ///< what taps outside the image read: the zero point of x
  std::ptrdiff_t first_row, rows, columns;  ///< outputs [first_row, first_row + rows) x [0, columns)
  std::size_t channels;
  const void *packed;
  /// uint8 or float: output (r, c) at y + r * y_row + c * y_pixel elements; nothing but channels of these rows is written
  void *y;
  std::ptrdiff_t y_row, y_pixel;
  QuantizedRange range;  ///< for run_u8
  float lo, hi;          ///< for run_f32: the result is clamped to [lo, hi] (infinities: not at all)
  void *scratch;         ///< scratch_bytes(window), 64-byte aligned, one for each thread
};

struct DepthwiseKernel {
  const char *name;
  Isa isa;
  std::size_t (*packed_bytes)(const DepthwiseWindow &window, std::size_t channels);
  void (*pack)(void *packed, const DepthwiseWindow &window, const DepthwiseWeights &w);
  std::size_t (*scratch_bytes)(const DepthwiseWindow &window);
  void (*run_u8)(const DepthwiseArgs &args);   ///< y = requantize(acc, multiplier, range)
  void (*run_f32)(const DepthwiseArgs &args);  ///< y = clamp(float(acc) * multiplier)
};

std::span<const DepthwiseKernel> depthwise_kernels();

}  // namespace qtn::kernels
