// SPDX-License-Identifier: Apache-2.0
// How large sums of products by constant weights become, so that int32 holds them.
#pragma once

#include <vector>

#include "graph/graph.hpp"

namespace qtn::graph {

/// The largest activation of 8 bits, in steps from its zero point, and the largest sum that int32 holds.
inline constexpr double kMostActivation = 255, kMostSum = 2147483647;

/// The sums of the magnitudes of weights, float32 or int8, one for each index along the axis of output channels.
std::vector<double> weight_magnitudes(const Tensor &weight, std::size_t axis);

/// How many products an output of a linear node sums.
std::int64_t weight_depth(const Node &node, const Shape &weight);

}  // namespace qtn::graph
