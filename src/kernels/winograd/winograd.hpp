// SPDX-License-Identifier: Apache-2.0
// Convolution of channels-last uint8 images by int8 weights, 3x3 at every pixel, exact, with 16 products for each channel
// where there would be 36: F(2x2, 3x3) of Lavin and Gray, Fast Algorithms for Convolutional Neural Networks (2015). A
// window over several planes of a volume is one of an image with the channels of all of these.
//
//   Y = A' [(G g G') * (B' d B)] A      d: 4x4 pixels, g: 3x3 weights, Y: 2x2 sums, *: element by element
//
// With 2G in place of G nothing is a fraction: d becomes 11 bits, g 12, and Y four times the sum. Sums wrap modulo 2^32,
// which does not matter as long as four times the sum is below 2^31: up to kMostChannels, of all planes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.hpp"
#include "base/requantize.hpp"

namespace qtn::kernels {

/// What a window reads.
struct WinogradDepth {
  std::size_t planes, channels;  ///< of a plane
};

struct WinogradWeights {
  const std::int8_t *w;      ///< [n][planes][3][3][channels]
  const std::int32_t *bias;  ///< [n], zero point of x folded in
  const float *multiplier;   ///< [n], finite: to uint8: scale_x*scale_w/scale_y; to float: scale_x*scale_w
  std::size_t n;
  WinogradDepth depth;
};

/// Some rows of outputs of one image, and some channels of them.
struct WinogradArgs {
  /// [depth.planes]: pixel (r, c) at r * x_row + c * x_pixel from each; kReadSlack bytes after the last are read. Null: a
  /// plane outside of the volume.
  const std::uint8_t *const *planes;
  std::ptrdiff_t height, width, x_row, x_pixel;
  std::ptrdiff_t pad[2];  ///< output (r, c) reads pixels from (r - pad[0], c - pad[1]) on
  std::uint8_t outside;   ///< what taps outside the image read: the zero point of x
  /// Outputs [first_row, first_row + rows) x [first_column, first_column + columns), 2x2 or more.
  std::ptrdiff_t first_row, rows, first_column, columns;
  WinogradDepth depth;
  std::size_t n;
  /// What pack() wrote; packed_bytes(j) further it begins with channel j of the outputs, a multiple of nr.
  const void *packed;
  /// uint8 or float: output (r, c) at y + r * y_row + c * y_pixel elements; nothing but n channels of these is written
  void *y;
  std::ptrdiff_t y_row, y_pixel;
  QuantizedRange range;  ///< for run_u8
  float lo, hi;          ///< for run_f32: the result is clamped to [lo, hi] (infinities: not at all)
  void *scratch;         ///< scratch_bytes(), 64-byte aligned, one for each thread
};

struct WinogradKernel {
  static constexpr std::size_t kMostChannels = 1827;  ///< 4 * 255 * 128 * 9 * kMostChannels < 2^31

  const char *name;
  Isa isa;
  std::size_t nr;  ///< channels of the outputs that are made together
  std::size_t (*packed_bytes)(std::size_t n, WinogradDepth depth);
  void (*pack)(void *packed, const WinogradWeights &w);
  std::size_t (*scratch_bytes)(std::ptrdiff_t rows, std::ptrdiff_t columns, WinogradDepth depth);
  void (*run_u8)(const WinogradArgs &args);   ///< y = requantize(acc, multiplier, range)
  void (*run_f32)(const WinogradArgs &args);  ///< y = clamp(float(acc) * multiplier)
};

/// Most specialised first. Sets with dot products of bytes have no such kernel: four products for each lane in one
/// instruction are worth more than fewer products of words.
std::span<const WinogradKernel> winograd_kernels();

}  // namespace qtn::kernels
