// SPDX-License-Identifier: Apache-2.0
// The grid that QuantizeLinear and DequantizeLinear are given as inputs scale and zero point and attributes axis and
// block_size: one scale, one for each index of the axis, or one for each block along it.
#pragma once

#include "ops/op.hpp"

namespace qtn::ops {

/// Checks shapes and types of a call's inputs 0 to 2; reads no data. Throws QTN_ESHAPE, QTN_EDTYPE or QTN_EINVAL.
void check_linear_grid(const char *op, const Call &call);

/// The quantizer of a checked call for integers of this type. Throws QTN_EINVAL on a scale that is not positive and
/// finite, and on a zero point that the type does not have.
QuantizerPtr linear_quantizer(const char *op, const Call &call, qdtype dtype);

/// The same from a node's parts, for x of `shape`.
QuantizerPtr linear_quantizer(const char *op, const Attrs &attrs, const Shape &shape, const Tensor &scale,
                              const Tensor *zero, qdtype dtype, Numerics numerics);

/// Whether no scale is negative or 0, which DequantizeLinear may have and quantizers do not.
bool are_positive(const Tensor &scale);

/// What DequantizeLinear makes numbers of, on the grid that it says, or of on_positive_scales().
Tensor on_linear_grid(const char *op, const Attrs &attrs, const Tensor &integers, const Tensor &scale,
                      const Tensor *zero, Numerics numerics);

}  // namespace qtn::ops
