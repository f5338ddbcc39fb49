// SPDX-License-Identifier: Apache-2.0
// Inference through the branches that are taken: one look at a graph says which way it goes at every If.
#pragma once

#include "graph/graph.hpp"

namespace qtn::graph {

/// As infer_partly(); where all that an If reads is known, and the data of its condition, what its branch makes is known
/// as well, and the If is one of the stops. For inputs with which the graph runs: others may take another branch.
PartlyInferred infer_branches(const Graph &g, std::span<const ops::TensorType> inputs, std::span<const Tensor> values);

}  // namespace qtn::graph
