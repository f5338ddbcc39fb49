// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of channels-last float32 images. Each output is one chain of fused multiply-adds which begins
// with the bias and takes the taps inside the image row by row, so it has the same bits on every instruction set.
#pragma once

#include <cstddef>
#include <span>

#include "base/cpu.hpp"
#include "kernels/depthwise/depthwise.hpp"

namespace qtn::kernels {

/// Some rows of outputs of one image, or some of its channels.
struct DepthwiseRealArgs {
  DepthwiseWindow window;
  const float *x;                           ///< pixel (r, c) at x + (r * width + c) * x_pixel
  std::ptrdiff_t height, width, x_pixel;    ///< distances in elements
  std::ptrdiff_t first_row, rows, columns;  ///< outputs [first_row, first_row + rows) x [0, columns)
  std::size_t channels;
  const float *weights;  ///< [kernel rows][kernel columns][channels], tap (r, c) `tap` elements after the one before
  std::ptrdiff_t tap;
  const float *bias;  ///< [channels]
  float *y;           ///< output (r, c) at y + (r * columns + c) * y_pixel
  std::ptrdiff_t y_pixel;
  float lo, hi;  ///< the result is clamped to [lo, hi] (infinities: not at all)
};

struct DepthwiseRealKernel {
  const char *name;
  Isa isa;
  void (*run)(const DepthwiseRealArgs &args);
};

std::span<const DepthwiseRealKernel> depthwise_real_kernels();

}  // namespace qtn::kernels
