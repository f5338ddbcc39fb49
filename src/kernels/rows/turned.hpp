// SPDX-License-Identifier: Apache-2.0
// Rows of which a vector holds several, turned so that each has a lane.
#pragma once

#include <cstddef>

namespace qtn::kernels {
namespace {

/// f(turned) gets [columns][kTogether], of which the last rows may be missing, and returns where the results lie likewise.
/// There are kMost columns at most.
template <std::size_t kMost, std::size_t kTogether, class F>
void for_turned_rows(const float *x, float *y, std::size_t rows, std::size_t columns, const F &f) {
  float turned[kMost * kTogether] = {};
  for (std::size_t first = 0; first < rows; first += kTogether) {
    const std::size_t count = rows - first < kTogether ? rows - first : kTogether, begin = first * columns;
    for (std::size_t r = 0; r < count; ++r)
      for (std::size_t k = 0; k < columns; ++k) turned[k * kTogether + r] = x[begin + r * columns + k];
    const float *results = f(static_cast<float *>(turned));
    for (std::size_t r = 0; r < count; ++r)
      for (std::size_t k = 0; k < columns; ++k) y[begin + r * columns + k] = results[k * kTogether + r];
  }
}

}  // namespace
}  // namespace qtn::kernels
