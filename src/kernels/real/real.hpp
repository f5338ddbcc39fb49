// SPDX-License-Identifier: Apache-2.0
// What networks in float32, and calibration by them, do besides matrix products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.hpp"

namespace qtn::kernels {

/// y[i] = begin + sum over taps, in their order, of weights[t] * x[offsets[t] + i]
struct TapsArgs {
  const float *x;
  const std::ptrdiff_t *offsets;
  const float *weights;
  std::size_t taps;
  float begin;
  float *y;
  std::size_t count;
};

/// Where not all are finite, the ends are not to be used. Zeros have no sign.
struct Extent {
  float min, max;
  bool finite;
};

struct RealKernel {
  const char *name;
  Isa isa;
  void (*taps)(const TapsArgs &args);
  void (*clamp)(float *y, std::size_t count, float lo, float hi);  ///< NaN stays
  Extent (*extent)(const float *x, std::size_t count);             ///< of one value or more
};

std::span<const RealKernel> real_kernels();

/// The one for the instruction set in force.
const RealKernel &real_kernel();

}  // namespace qtn::kernels
