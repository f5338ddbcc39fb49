// SPDX-License-Identifier: Apache-2.0
// Which of the vectorised layouts a call has, if any. Rows and columns may trade places: the work is the same.
#pragma once

#include "kernels/quantize/quantize.hpp"

namespace qtn::kernels {

namespace quantize_ref {
void quantize(const QuantizeArgs &args);
void dequantize(const DequantizeArgs &args);
}  // namespace quantize_ref

namespace {

template <class T>
void exchange(T &a, T &b) {
  const T c = a;
  a = b;
  b = c;
}

/// rows: columns are neighbours on both sides. planes: rows are neighbours in x, columns in q.
template <class Args>
void run_axes(Args args, void (*rows)(const Args &), void (*planes)(const Args &), void (*any)(const Args &)) {
  if (args.rows == 0 || args.columns == 0) return;
  if (args.q_row == 1 && args.q_column != 1) {
    exchange(args.rows, args.columns);
    exchange(args.x_row, args.x_column);
    exchange(args.q_row, args.q_column);
  }
  if (args.q_column != 1) return any(args);
  if (args.x_column == 1) {
    const std::ptrdiff_t columns = static_cast<std::ptrdiff_t>(args.columns);
    if (args.x_row == columns && args.q_row == columns) args.columns *= args.rows, args.rows = 1;
    return rows(args);
  }
  if (args.x_row == 1) return planes(args);
  any(args);
}

}  // namespace
}  // namespace qtn::kernels
