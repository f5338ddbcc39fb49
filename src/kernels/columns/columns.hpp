// SPDX-License-Identifier: Apache-2.0
// Moments of the columns of a matrix of float32, and what they are standardized to: channels of images whose channels
// lie side by side. In double, each column for itself, so that all instruction sets make the same bits.
#pragma once

#include <cstddef>
#include <span>

#include "base/cpu.hpp"

namespace qtn::kernels {

/// sums[c] += those of column c, from the first row to the last
struct ColumnSumsArgs {
  const float *x;
  std::size_t rows;
  std::ptrdiff_t row;  ///< elements from row to row
  std::size_t columns;
  double *sums;
  const double *centres;  ///< of squares(), for each column
};

/// y = clamp(float((x - centre) * gain + shift)) with those of each column; NaN stays.
struct StandardizeArgs {
  std::size_t rows, columns;
  const double *centres, *gains, *shifts;
  float lo, hi;
  const float *x;
  std::ptrdiff_t x_row;  ///< elements from row to row
  float *y;
  std::ptrdiff_t y_row;
};

struct ColumnsKernel {
  const char *name;
  Isa isa;
  void (*sum)(const ColumnSumsArgs &args);      ///< of x
  void (*squares)(const ColumnSumsArgs &args);  ///< of (x - centre)²
  void (*standardize)(const StandardizeArgs &args);
};

std::span<const ColumnsKernel> columns_kernels();

/// The one for the instruction set in force.
const ColumnsKernel &columns_kernel();

}  // namespace qtn::kernels
