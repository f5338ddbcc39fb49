// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/common/im2col.hpp"

namespace qtn::ops {

/// A convolution in float32 of one input channel a filter, without columns. False, and nothing written, where it is
/// another or its padding is out of proportion. `bias` may be nullptr.
bool run_depthwise(const Convolution &conv, const float *x, const float *weight, const float *bias, float *y);

}  // namespace qtn::ops
