// SPDX-License-Identifier: Apache-2.0
// GPTQ (Frantar et al., "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained Transformers", 2022):
// weights are rounded one input after the other, and those that are still to be rounded make up for the errors.
#pragma once

#include "quant/recover/rounding_problem.hpp"

namespace qtn::quant {

/// How far data of so many rows is trusted: the paper's hundredth, and more the fewer rows there are for each input,
/// because what follows from few of them fits these and no others.
inline double gptq_damping(std::int64_t depth, std::int64_t rows) {
  return 0.01 + static_cast<double>(depth) / static_cast<double>(rows);
}

/// The integers [outputs][depth]. A row is never worse than the nearest integers. `damping` is a part of the mean of the
/// diagonal of QQ. Takes the time of a solver of linear equations, depth² (depth / 3 + 2 outputs) multiply-adds.
std::vector<std::int64_t> round_with_feedback(const RoundingProblem &problem, double damping);

}  // namespace qtn::quant
