// SPDX-License-Identifier: Apache-2.0
// Where the plain integers of a file meet the grids of values.
#pragma once

#include "graph/graph.hpp"

namespace qtn::graph {

/// Whether products of these scales and integers overflow floats only where integers do, too.
bool are_moderate(const Tensor &scales);

/// The grid of 8 bits and one scale that a QuantizeLinear or DequantizeLinear node has by constants, if floats hold each
/// of its numbers without loss; nullptr where the node is another one, or has or computes another grid.
QuantizerPtr constant_grid(const Graph &g, const Node &node, Numerics numerics);

/// Whether the node is a DequantizeLinear whose result is on its own grid, or a QuantizeLinear whose operand is: the
/// integers stay what they are.
bool passes_integers(const Graph &g, const Node &node);

}  // namespace qtn::graph
