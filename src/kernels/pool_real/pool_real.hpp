// SPDX-License-Identifier: Apache-2.0
// Pools of channels-last float32 images.
#pragma once

#include <cstddef>
#include <span>

#include "base/cpu.hpp"

namespace qtn::kernels {

/// Output pixels whose windows lie alike: tap t of pixel p begins at taps[t] + p * step.
struct PoolRealArgs {
  const float *const *taps;
  std::size_t tap_count;  ///< 1 or more
  std::size_t pixels, channels;
  std::ptrdiff_t step;  ///< elements
  float *y;             ///< pixel p at y + p * ldy; nothing but channels of these pixels is written
  std::ptrdiff_t ldy;
  double share;  ///< of each tap in an average
};

struct PoolRealKernel {
  const char *name;
  Isa isa;
  void (*max)(const PoolRealArgs &args);      ///< 0 has no sign, and NaN wins
  void (*average)(const PoolRealArgs &args);  ///< sum * share, in double, in the order of the taps
};

std::span<const PoolRealKernel> pool_real_kernels();

}  // namespace qtn::kernels
