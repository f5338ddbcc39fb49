// SPDX-License-Identifier: Apache-2.0
// Where the scales of a quantizer lie in a tensor, and where they go in a view of it.
//
// Per tensor there is one scale, per channel one for each index along the axis. Per block the scales are a grid in
// row-major order, of the tensor's shape except for the axis, which has ceil(dim / block_size).
#pragma once

#include <span>

#include "core/quantizer.hpp"
#include "core/shape.hpp"

namespace qtn {

/// A contiguous tensor as [outer, dim, inner] around the axis of its scales. The scale of element (o, i, j) is number
/// o * outer_step + i / block * axis_step + j * inner_step.
struct ScaleLayout {
  std::int64_t outer = 1, dim = 1, inner = 1;
  std::int64_t block = 1;
  std::int64_t outer_step = 0, axis_step = 0, inner_step = 0;
};
ScaleLayout scale_layout(const Quantizer &q, const Shape &shape);

/// Shape of the scales: [] per tensor, [channels], or the grid of blocks.
Shape scale_shape(const Quantizer &q, const Shape &shape);

/// The same scales along another axis.
QuantizerPtr moved_scales(const QuantizerPtr &q, std::size_t axis);

/// The quantizer of a view of a tensor of `shape`. Throws QTN_EINVAL where no scale would be left.
QuantizerPtr select_scales(const QuantizerPtr &q, const Shape &shape, std::size_t axis, std::int64_t index);
QuantizerPtr slice_scales(const QuantizerPtr &q, const Shape &shape, std::size_t axis, std::int64_t start,
                          std::int64_t count, std::int64_t step);
QuantizerPtr permute_scales(const QuantizerPtr &q, const Shape &shape, std::span<const std::size_t> axes);

/// Throws QTN_ESHAPE where the axis of the scales does not survive.
QuantizerPtr reshape_scales(const QuantizerPtr &q, const Shape &shape, const Shape &target);

}  // namespace qtn
