// SPDX-License-Identifier: Apache-2.0
// The weights of MatMulNBits as a tensor on a grid.
#pragma once

#include "ops/op.hpp"

namespace qtn::ops {

/// [N, K] of uint2, uint4 or uint8 in blocks along K, from the node's attributes and its inputs B, scales and zero
/// points, which are integers.
Tensor nbits_weights(const Call &call);

}  // namespace qtn::ops
