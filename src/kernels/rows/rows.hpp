// SPDX-License-Identifier: Apache-2.0
// Rows of floats that are normalized one by one. Sums are formed in double: element j is added to sum j % 8, what is
// beyond the last eight to a ninth, and these are added to that in order.
#pragma once

#include <cstddef>
#include <span>

#include "base/cpu.hpp"

namespace qtn::kernels {

/// Rows of `columns` elements without gaps. v is (x - mean) / sqrt(variance + epsilon), formed in double and rounded.
struct RowsArgs {
  const float *x;
  std::size_t rows, columns;
  double epsilon;
  const float *scale;  ///< of each column
};

/// y = v * scale + shift
struct NormalizeRowsArgs {
  RowsArgs rows;
  const float *shift;  ///< of each column; null: none
  float *y;
};

/// With g = dy * scale, dx = (g - mean of g - v * mean of g v) / sqrt(variance + epsilon).
struct NormalizeRowsBackwardArgs {
  RowsArgs rows;
  const float *dy;
  float *dx;                  ///< null: not wanted
  double *d_scale, *d_shift;  ///< sums of dy * v and of dy in each column are added to these
};

struct RowsKernel {
  const char *name;
  Isa isa;
  void (*normalize)(const NormalizeRowsArgs &args);
  void (*backward)(const NormalizeRowsBackwardArgs &args);
};

std::span<const RowsKernel> rows_kernels();

/// The one for the instruction set in force.
const RowsKernel &rows_kernel();

}  // namespace qtn::kernels
