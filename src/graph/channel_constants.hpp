// SPDX-License-Identifier: Apache-2.0
// Numbers for the output channels of a dynamic product: one axis as its operands, and whatever broadcasts over its result.
#pragma once

#include "graph/graph.hpp"

namespace qtn::graph {

/// A constant of one axis from one that broadcasts over the result, which is that itself where it has one axis or none;
/// kNoValue where it holds anything else than a number for each channel, or one for all.
ValueId operand_of_channels(Graph &g, const Node &product, ValueId v);

/// The other way.
ValueId broadcast_of_channels(Graph &g, const Node &product, ValueId v);

}  // namespace qtn::graph
