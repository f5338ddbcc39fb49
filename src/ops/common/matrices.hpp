// SPDX-License-Identifier: Apache-2.0
// What Det and Inverse share: square matrices, and the pivots of elimination.
#pragma once

#include <algorithm>
#include <cmath>

#include "ops/common/infer.hpp"

namespace qtn::ops {

/// Throws QTN_ESHAPE where the last two axes of x are not of one length.
inline void require_square(const char *op, const Tensor &x) {
  const std::size_t rank = x.rank();
  if (rank < 2 || x.dim(rank - 1) != x.dim(rank - 2))
    fail(QTN_ESHAPE, op, ": x ", to_string(x.shape()), " is not of square matrices");
}

/// Exchanges row k of n rows with the one from there on whose element k is largest. Returns whether that was another.
inline bool bring_pivot(double *rows, std::int64_t n, std::int64_t width, std::int64_t k) {
  std::int64_t top = k;
  for (std::int64_t i = k + 1; i < n; ++i)
    if (std::abs(rows[i * width + k]) > std::abs(rows[top * width + k])) top = i;
  if (top != k) std::swap_ranges(rows + k * width, rows + (k + 1) * width, rows + top * width);
  return top != k;
}

}  // namespace qtn::ops
