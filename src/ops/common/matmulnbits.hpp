// SPDX-License-Identifier: Apache-2.0
// The weights of MatMulNBits as a tensor on a grid.
#pragma once

#include "ops/op.hpp"

namespace qtn::ops {

/// [N, K] of uint4 in blocks along K, from the node's attributes and its inputs B, scales and zero_points.
Tensor nbits_weights(const Call &call);

}  // namespace qtn::ops
