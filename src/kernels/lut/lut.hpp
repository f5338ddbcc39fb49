// SPDX-License-Identifier: Apache-2.0
// Any function of one quantized uint8 value is a table of 256 entries: y[i] = table[x[i]].
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.hpp"

namespace qtn::kernels {

struct LutKernel {
  const char *name;
  Isa isa;
  void (*run)(std::uint8_t *y, const std::uint8_t *x, std::size_t count, const std::uint8_t *table);
};

std::span<const LutKernel> lut_kernels();

}  // namespace qtn::kernels
