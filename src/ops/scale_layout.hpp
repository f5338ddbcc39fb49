// SPDX-License-Identifier: Apache-2.0
// Which scale belongs to which element: what QuantizeLinear and DequantizeLinear share.
#pragma once

#include <algorithm>

#include "ops/elementwise.hpp"

namespace qtn::ops {

/// Elements lie [outer][dim][inner], where dim is the quantized axis. Steps are 0 where elements share a scale.
struct ScaleLayout {
  std::int64_t inner = 1, dim = 1;
  std::int64_t block = 1;       ///< indices of the axis that share their scales
  std::int64_t outer_step = 0;  ///< from one outer index to the next, in the list of scales
  std::int64_t block_step = 0;  ///< from one block to the next
  std::int64_t step = 0;        ///< from one inner index to the next

  /// Calls f(begin, end, base) in parallel for stretches of elements; element i of [begin, end) has scale
  /// base + (i - begin) * step.
  template <class F>
  void for_stretches(std::int64_t count, F &&f) const {
    for_blocks(count, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end;) {
        const std::int64_t row = i / inner, stop = std::min(end, (row + 1) * inner);
        f(i, stop, row / dim * outer_step + row % dim / block * block_step + (i - row * inner) * step);
        i = stop;
      }
    });
  }
};

/// Of inputs x, scale and zero point and the attributes axis and block_size, all checked: one scale, one for each index
/// of the axis, or one for each block along it. Throws QTN_ESHAPE, QTN_EDTYPE or QTN_EINVAL.
ScaleLayout scale_layout(const char *op, const Call &call);

}  // namespace qtn::ops
