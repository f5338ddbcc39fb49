// SPDX-License-Identifier: Apache-2.0
// AdaRound (Nagel et al., "Up or Down? Adaptive Rounding for Post-Training Quantization", 2020): which weights of a
// layer to round up and which down so that the layer's outputs, not the weights, come out nearest.
#pragma once

#include "quant/recover/rounding_problem.hpp"

namespace qtn::quant {

/// The integers [outputs][depth]. A row is never worse than the nearest integers.
std::vector<std::int64_t> learn_rounding(const RoundingProblem &problem, int iterations);

}  // namespace qtn::quant
