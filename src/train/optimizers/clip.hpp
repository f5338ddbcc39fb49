// SPDX-License-Identifier: Apache-2.0
// Clipping of gradients, as torch.nn.utils has it.
#pragma once

#include <span>

#include "train/parameter.hpp"

namespace qtn::train {

/// The Euclidean norm of all gradients as one vector.
double gradient_norm(std::span<const Parameter> parameters);

/// Multiplies all gradients by bound / (norm + 1e-6) where that is below 1. A norm that is not finite makes them NaN.
void clip_norm(std::span<const Parameter> parameters, double bound);

/// Every element to [-bound, bound]; NaN stays.
void clip_value(std::span<const Parameter> parameters, double bound);

}  // namespace qtn::train
