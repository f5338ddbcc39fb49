// SPDX-License-Identifier: Apache-2.0
// Arithmetic in float32 by the kernels for it.
#pragma once

#include "kernels/pointwise/pointwise.hpp"
#include "ops/op.hpp"

namespace qtn::ops {

/// y = f(a, b) of contiguous float32 under broadcasting. y lies apart from both, for kernels compute ends of rows twice;
/// the larger or smaller may take the place of a.
void run_arithmetic(kernels::Arithmetic f, const Tensor &a, const Tensor &b, const Tensor &y);

}  // namespace qtn::ops
