// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

namespace qtn::ops {

/// Softmax, or its logarithm, along the columns of a plane [length][inner] of float32; y is not x.
void softmax_columns(const float *x, float *y, std::size_t length, std::size_t inner, bool logarithm);

/// The longest row of which a vector is taken to hold several, and how many rows are turned at a time.
inline constexpr std::size_t kShortRow = 15, kTurnedRows = 16;

/// columns(from, to) for some short rows at a time, turned, so that each has a lane: [length][kTurnedRows].
template <class Columns>
void for_short_rows(const float *x, float *y, std::size_t rows, std::size_t length, Columns &&columns) {
  float from[kShortRow * kTurnedRows] = {}, to[kShortRow * kTurnedRows];
  for (std::size_t first = 0; first < rows; first += kTurnedRows) {
    const std::size_t count = std::min(kTurnedRows, rows - first), begin = first * length;
    for (std::size_t r = 0; r < count; ++r)
      for (std::size_t k = 0; k < length; ++k) from[k * kTurnedRows + r] = x[begin + r * length + k];
    columns(from, to);
    for (std::size_t r = 0; r < count; ++r)
      for (std::size_t k = 0; k < length; ++k) y[begin + r * length + k] = to[k * kTurnedRows + r];
  }
}

}  // namespace qtn::ops
