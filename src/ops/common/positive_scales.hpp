// SPDX-License-Identifier: Apache-2.0
// Integers whose scales are negative or 0, which ONNX allows and quantizers do not have.
#pragma once

#include "ops/op.hpp"

namespace qtn::ops {

/// The same numbers with positive scales: one scale and zero point for all, for each index of the axis, or for each
/// block along it. Where a scale is 0, all integers are the zero point, on a scale of 1. If none is negative, or integers
/// are of up to 8 bits and in blocks, they keep their type, and those of negative scales take the complement of integers
/// and zero point, (q - z) * s = (~q - ~z) * -s. Others become integers around 0, (z - q) * -s: of 8 bits, or of fewer
/// where they had fewer and these hold them; or float32 where 8 bits do not.
Tensor on_positive_scales(const Tensor &integers, std::span<const float> scales, std::span<const std::int64_t> zeros,
                          std::size_t axis, std::int64_t block, Numerics numerics);

/// The numbers of what may be on a grid.
Tensor reals_of(const Tensor &t);

}  // namespace qtn::ops
