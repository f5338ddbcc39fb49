// SPDX-License-Identifier: Apache-2.0
// The weights of MatMulNBits: as a tensor on a grid, and for products by activations in 8 bits.
#pragma once

#include "base/memory.hpp"
#include "kernels/gemm_blocks/gemm_blocks.hpp"
#include "ops/op.hpp"

namespace qtn::ops {

/// [N, K] of uint2, uint4 or uint8 in blocks along K, from the node's attributes and its inputs B, scales and zero
/// points, which are integers.
Tensor nbits_weights(const Call &call);

/// Whether attributes ask for activations in 8 bits.
bool asks_for_bytes(const Attrs &attrs);

/// Whether a node brings its activations to 8 bits (kernels/gemm_blocks): its accuracy_level is 4, each element has the
/// scale of the block in which it lies, and zero points are integers.
bool multiplies_bytes(const Call &call);

/// What such a node multiplies by.
kernels::BlocksForm nbits_form(const Call &call);

/// The same and the bias in panels of the kernel.
AlignedBuffer packed_nbits(const Call &call, const kernels::GemmBlocksKernel &kernel);

}  // namespace qtn::ops
