// SPDX-License-Identifier: Apache-2.0
// Rows that lie end to end in all three operands are one long row.
#pragma once

#include "kernels/elementwise/elementwise.hpp"

namespace qtn::kernels {
namespace {

inline BinaryArgs merged_rows(BinaryArgs args) {
  const std::ptrdiff_t columns = static_cast<std::ptrdiff_t>(args.columns);
  const auto end_to_end = [&](std::ptrdiff_t step, std::ptrdiff_t row) { return row == step * columns; };
  if (end_to_end(args.a_step, args.a_row) && end_to_end(args.b_step, args.b_row) && args.y_row == columns) {
    args.columns *= args.rows;
    args.rows = 1;
  }
  return args;
}

/// No result, of operands 255 from their zero points, comes near the limits of int32 (or is NaN).
inline bool results_are_small(const BinaryArgs &args) {
  const double each = 255.0 * 255.0 * (args.a_multiplier < 0 ? -args.a_multiplier : args.a_multiplier);
  const double other = 255.0 * 255.0 * (args.b_multiplier < 0 ? -args.b_multiplier : args.b_multiplier);
  return each + other < 2e9;
}

}  // namespace
}  // namespace qtn::kernels
