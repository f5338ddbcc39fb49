// SPDX-License-Identifier: Apache-2.0
// Convolutions in float32 without columns of patches: planes are copied with zeros around them, where each tap of
// neighbouring outputs is a row of neighbours. A stride takes planes apart: rows and columns that one tap meets become
// a plane of their own.
#pragma once

#include "base/scratch.hpp"
#include "ops/common/im2col.hpp"

namespace qtn::ops {

/// Whether copies of the planes are not much larger than these. Volumes have none.
bool fits_planes(const Convolution &conv);

/// Which runs of a convolution are made ready.
enum class ConvPasses { forward, all };

/// A convolution that fits, with what its runs need to know: they allocate nothing but scratch.
class ConvPlanes {
 public:
  ConvPlanes(const Convolution &conv, ConvPasses passes);
  ~ConvPlanes();

  // As those of ConvRuns.
  void forward(const float *x, const float *weight, float *y, Scratch &scratch) const;
  void input_gradient(const float *weight, const float *dy, float *dx, bool adds, Scratch &scratch) const;
  void weight_gradient(const float *x, const float *dy, float *dw, Scratch &scratch) const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace qtn::ops
