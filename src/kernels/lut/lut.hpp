// SPDX-License-Identifier: Apache-2.0
// Any function of one quantized uint8 value is a table of 256 entries: y[i] = table[x[i]].
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.hpp"

namespace qtn::kernels {

/// y may be x.
struct LutArgs {
  std::uint8_t *y;
  const std::uint8_t *x;
  std::size_t rows, columns;
  std::ptrdiff_t row;  ///< bytes from one to the next, of both
  const std::uint8_t *table;
};

struct LutKernel {
  const char *name;
  Isa isa;
  void (*run)(const LutArgs &args);
};

std::span<const LutKernel> lut_kernels();

}  // namespace qtn::kernels
