// SPDX-License-Identifier: Apache-2.0
// AdaRound (Nagel et al., "Up or Down? Adaptive Rounding for Post-Training Quantization", 2020): which weights of a
// layer to round up and which down so that the layer's outputs, not the weights, come out nearest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace qtn::quant {

/// Rows w with steps and zero points for each element: q stands for (q - zero) * step, lo <= q <= hi. What is to be
/// small is E (w x - ŵ x̂)² = ŵ QQ ŵ' - 2 ŵ QY + const.
struct RoundingProblem {
  std::int64_t outputs, depth;
  std::span<const float> weights, steps;  ///< [outputs][depth]
  std::span<const std::int64_t> zeros;    ///< [outputs][depth]
  std::int64_t lo, hi;
  std::span<const float> qq;  ///< [depth][depth], mean of x̂ x̂'
  std::span<const float> qy;  ///< [depth][outputs], mean of x̂ (w x)
};

/// The integers [outputs][depth]. A row is never worse than the nearest integers.
std::vector<std::int64_t> learn_rounding(const RoundingProblem &problem, int iterations);

}  // namespace qtn::quant
