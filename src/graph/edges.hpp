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

/// A DequantizeLinear of integers that the graph is given, or another node makes, has a result on its grid, and so has
/// what a QuantizeLinear alone makes into integers that the graph returns, or another node reads. Where the graph has
/// neither both nor other values on grids, weights among them, it is float, and stays so. So does a reader find grids, and
/// what makes a graph for a file has to. Without `numerics` the graph's other grids say them.
void extend_grids(Graph &g, std::optional<Numerics> numerics = {});

}  // namespace qtn::graph
