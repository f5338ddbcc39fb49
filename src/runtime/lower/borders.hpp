// SPDX-License-Identifier: Apache-2.0
// Borders of a volume of integers, which products read in place. Those of an image are copied with it as it is read.
#pragma once

#include "runtime/lower/lowering.hpp"

namespace qtn::runtime {

/// A volume with zero points to the left and right, and its window over it, where rows of taps that are no whole dwords
/// reach out there; otherwise itself.
Edge with_borders(Lowering &l, const Edge &x, std::size_t groups, ops::Window &window);

}  // namespace qtn::runtime
