// SPDX-License-Identifier: Apache-2.0
// Convolutions in float32 by weights that change, and their gradients. Work is cut by shapes alone, so results do not
// depend on the number of threads.
#pragma once

#include "base/scratch.hpp"
#include "ops/common/conv_planes.hpp"

namespace qtn::ops {

/// A convolution, without a bias, and its gradients. `x` and `dx` are [image][channel][in], `y` and `dy`
/// [image][filter][out]. What is written goes over what was there. Runs allocate nothing but scratch.
class ConvRuns {
 public:
  explicit ConvRuns(const Convolution &conv, ConvPasses passes = ConvPasses::all);

  void forward(const float *x, const float *weight, float *y, Scratch &scratch) const;
  /// A number for each filter.
  void add_bias(const float *bias, float *y) const;
  /// Every tap of every output position, times the weight, where it came from: a transposed convolution. `adds`: to
  /// what is in dx.
  void input_gradient(const float *weight, const float *dy, float *dx, bool adds, Scratch &scratch) const;
  void weight_gradient(const float *x, const float *dy, float *dw, Scratch &scratch) const;

 private:
  const Convolution conv_;
  std::optional<ConvPlanes> planes_;
};

/// The operator's gradient. `adds`: that of x is added to what is in dx[0].
void conv_backward(const ConvRuns &conv, const Backward &run, std::span<const Tensor> dx, bool adds = false);

}  // namespace qtn::ops
