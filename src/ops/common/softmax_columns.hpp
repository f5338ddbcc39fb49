// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace qtn::ops {

/// Softmax, or its logarithm, along the columns of a plane [length][inner] of float32; y is not x.
void softmax_columns(const float *x, float *y, std::size_t length, std::size_t inner, bool logarithm);

}  // namespace qtn::ops
