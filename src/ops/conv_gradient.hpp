// SPDX-License-Identifier: Apache-2.0
// Gradients of a convolution in float32. Work is cut by shapes alone, so results do not depend on the number of
// threads.
#pragma once

#include "base/scratch.hpp"
#include "ops/im2col.hpp"

namespace qtn::ops {

/// y, over what was there, without a bias: what the gradient of a transposed convolution is.
void conv_forward(const Convolution &conv, const float *x, const float *weight, float *y, Scratch &scratch);

/// dx, over what was there: every tap of every output position, times the weight, where it came from. `x` and `dx` are
/// [image][channel][in], `dy` is [image][filter][out].
void conv_input_gradient(const Convolution &conv, const float *weight, const float *dy, float *dx, Scratch &scratch);

/// dw, over what was there.
void conv_weight_gradient(const Convolution &conv, const float *x, const float *dy, float *dw, Scratch &scratch);

/// What the operator's gradient does once it has found out the convolution.
void conv_backward(const Convolution &conv, const Backward &run, std::span<const Tensor> dx);

}  // namespace qtn::ops
