// SPDX-License-Identifier: Apache-2.0
// Pooling of channels-last uint8 over windows given by pointers: window w of output pixel p starts at
// windows[w] + p*pixel_step and holds `channels` bytes.
//
//   max:     y = max over the window (taps outside the image are left out by the caller)
//   average: y = requantize(sum over the window of (x - x_zero), multiplier, range), multiplier = sx/sy/count
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.hpp"
#include "base/requantize.hpp"

namespace qtn::kernels {

struct PoolArgs {
  const std::uint8_t *const *windows;
  std::size_t window_count;  ///< at least 1
  std::size_t pixels;
  std::ptrdiff_t pixel_step;
  std::size_t channels;
  std::uint8_t *y;
  std::ptrdiff_t ldy;
  std::int32_t x_zero;   ///< average only
  float multiplier;      ///< average only
  QuantizedRange range;  ///< average only
};

struct PoolKernel {
  const char *name;
  Isa isa;
  void (*max)(const PoolArgs &args);
  void (*average)(const PoolArgs &args);
};

std::span<const PoolKernel> pool_kernels();

}  // namespace qtn::kernels
