// SPDX-License-Identifier: Apache-2.0
// PyTorch's search for the clipping range of a histogram: quantiles move inwards while the L2 error falls.
#pragma once

#include <span>

namespace qtn::quant {

struct ClipRange {
  float min, max;
};

/// `levels` = 2^bits of the target type.
ClipRange l2_search(std::span<const float> histogram, float min, float max, double levels);

}  // namespace qtn::quant
