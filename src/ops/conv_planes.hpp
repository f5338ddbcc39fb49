// SPDX-License-Identifier: Apache-2.0
// Convolutions in float32 without columns of patches: planes are copied with zeros around them, where each tap of
// neighbouring outputs is a row of neighbours. A stride takes planes apart: rows and columns that one tap meets become
// a plane of their own.
#pragma once

#include "base/scratch.hpp"
#include "ops/im2col.hpp"

namespace qtn::ops {

/// Whether copies of the planes are not much larger than these. Volumes have none.
bool fits_planes(const Convolution &conv);

/// As conv_forward(), conv_input_gradient() and conv_weight_gradient().
void planes_forward(const Convolution &conv, const float *x, const float *weight, float *y, Scratch &scratch);
void planes_input_gradient(const Convolution &conv, const float *weight, const float *dy, float *dx, Scratch &scratch);
void planes_weight_gradient(const Convolution &conv, const float *x, const float *dy, float *dw, Scratch &scratch);

}  // namespace qtn::ops
