// SPDX-License-Identifier: Apache-2.0
// Constants whose scales are negative or 0, which ONNX allows and quantizers do not have.
#pragma once

#include "ops/op.hpp"

namespace qtn::ops {

/// The same numbers with positive scales: one scale and zero point for all, for each index of the axis, or for each
/// block along it. Blocks of integers of up to 8 bits keep their type and take the complement of integers and zero
/// point, (q - z) * s = (~q - ~z) * -s. Others become integers around 0, (z - q) * -s: of 8 bits, or of fewer where they
/// had fewer and these hold them; or float32 where 8 bits do not.
Tensor on_positive_scales(const Tensor &integers, std::span<const float> scales, std::span<const std::int64_t> zeros,
                          std::size_t axis, std::int64_t block, Numerics numerics);

}  // namespace qtn::ops
