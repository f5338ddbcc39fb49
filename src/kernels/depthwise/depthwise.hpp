// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of channels-last uint8 by int8 weights, one weight per (tap, channel), exact int32
// accumulation.
//
// The caller turns geometry into pointers: for one run of output pixels, taps[t] is where tap t of the first pixel
// reads its channels (or a row of zero points, outside the picture), and each next pixel reads pixel_step bytes
// further.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.hpp"
#include "base/requantize.hpp"

namespace qtn::kernels {

struct DepthwiseWeights {
  const std::int8_t *w;      ///< [taps][channels]
  const std::int32_t *bias;  ///< [channels], zero point of x folded in
  const float *multiplier;   ///< [channels], finite
  std::size_t taps, channels;
};

struct DepthwiseArgs {
  const std::uint8_t *const *taps;  ///< [tap_count]; kReadSlack bytes after the last channel may be read
  std::size_t tap_count;
  std::size_t pixels;
  std::ptrdiff_t pixel_step;  ///< bytes between the reads of neighbouring output pixels, for every tap
  std::size_t channels;
  const void *packed;
  std::uint8_t *y;  ///< [pixels][channels], row stride ldy; nothing outside is written
  std::ptrdiff_t ldy;
  QuantizedRange range;
};

struct DepthwiseKernel {
  const char *name;
  Isa isa;
  std::size_t (*packed_bytes)(std::size_t taps, std::size_t channels);
  void (*pack)(void *packed, const DepthwiseWeights &w);
  void (*run)(const DepthwiseArgs &args);
};

std::span<const DepthwiseKernel> depthwise_kernels();

}  // namespace qtn::kernels
