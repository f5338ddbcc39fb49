// SPDX-License-Identifier: Apache-2.0
// Sums and products of two quantized uint8 operands of different scales.
//
//   add: y = quantize_scaled(float(a - za) * ma + float(b - zb) * mb)    ma = sa/sy, mb = sb/sy (negative: subtraction)
//   mul: y = quantize_scaled(float((a - za) * (b - zb)) * ma)            ma = sa*sb/sy
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.hpp"
#include "base/requantize.hpp"

namespace qtn::kernels {

/// y[i][j] for i in [0, rows), j in [0, columns). A stride of 0 repeats one row (or one element) of an operand.
struct BinaryArgs {
  std::size_t rows, columns;
  const std::uint8_t *a, *b;
  std::uint8_t *y;
  std::ptrdiff_t a_row, b_row, y_row;  ///< bytes from row to row
  std::ptrdiff_t a_step, b_step;       ///< bytes from column to column: 0 or 1
  std::int32_t a_zero, b_zero;
  float a_multiplier, b_multiplier;
  QuantizedRange range;
};

struct BinaryKernel {
  const char *name;
  Isa isa;
  void (*add)(const BinaryArgs &args);
  void (*mul)(const BinaryArgs &args);
};

std::span<const BinaryKernel> binary_kernels();

}  // namespace qtn::kernels
