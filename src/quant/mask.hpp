// SPDX-License-Identifier: Apache-2.0
// Constants that stand for nothing, as -1e9 and -inf do in front of a maximum.
#pragma once

#include "quant/observe/observer.hpp"

namespace qtn::quant {

/// Whether all numbers of a moved constant are at least 1e4 in magnitude and 64 times as far from zero as a grid of what
/// was observed reaches. Such a constant would take all steps of the grid; it becomes the end of it.
bool is_mask(const Tensor &constant, const Observer &observed);

}  // namespace qtn::quant
