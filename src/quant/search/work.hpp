// SPDX-License-Identifier: Apache-2.0
// How much the nodes of a network have to do, so that a search can ask what a layer costs for the time that it saves.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.hpp"

namespace qtn::quant {

/// What each node does in one run of these inputs, counted in multiplications; to write an element takes as long as some
/// of them. It follows from shapes alone, and is the same on every machine. A node whose shapes are not known before the
/// run is like the mean of the others.
std::vector<double> work_of_nodes(const graph::Graph &g, std::span<const Tensor> inputs);

}  // namespace qtn::quant
