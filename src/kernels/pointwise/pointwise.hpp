// SPDX-License-Identifier: Apache-2.0
// Arithmetic on pairs of float32, one of which may repeat: along a row, from row to row, or both; and on columns.
#pragma once

#include <cstddef>
#include <span>

#include "base/cpu.hpp"

namespace qtn::kernels {

/// The larger and the smaller: NaN is either, and b is of equal operands.
enum class Arithmetic { add, sub, mul, div, max, min };

struct PointwiseOperand {
  const float *at;
  std::ptrdiff_t row;  ///< elements from row to row; 0: all rows read the same
  bool repeats;        ///< a row reads one element only, else as many as it has columns
};

/// y = f(a, b) for rows of y without gaps. y is neither a nor b, or a of max and min. Not both operands repeat along a row.
struct PointwiseArgs {
  Arithmetic f;
  std::size_t rows, columns;
  PointwiseOperand a, b;
  float *y;
};

/// y = clamp(x * factor + addend) of each column; y may be x, and NaN stays.
struct AffineArgs {
  std::size_t rows, columns;
  const float *factor;
  const float *addend;  ///< null: none
  float lo, hi;
  const float *x;
  std::ptrdiff_t x_row;  ///< elements from row to row
  float *y;
  std::ptrdiff_t y_row;
};

struct PointwiseKernel {
  const char *name;
  Isa isa;
  void (*run)(const PointwiseArgs &args);
  void (*affine)(const AffineArgs &args);
};

std::span<const PointwiseKernel> pointwise_kernels();

/// The one for the instruction set in force.
const PointwiseKernel &pointwise_kernel();

}  // namespace qtn::kernels
