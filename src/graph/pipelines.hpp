// SPDX-License-Identifier: Apache-2.0
// What a graph is brought into before it is used: sequences of passes, by name.
#pragma once

#include "graph/graph.hpp"
#include "graph/passes/passes.hpp"

namespace qtn::graph {

enum class Pipeline {
  simplification,  ///< constants are folded, nodes that do nothing are gone; refuses nodes in training mode
  inference,       ///< simplified, one node where one can do the work of several
  execution,       ///< as a session runs it: inference, and operators that no file had in place of their formulas
  lone_norms,  ///< simplified; normalizations follow the layers that take them up, and those that are left stand alone
  quantization,    ///< as grids are placed on it: inference, and products in the form that has integer arithmetic
  training_grids,  ///< the same without a change of layouts, which the graph that is trained has as the file has them
  dynamic_quantization,  ///< as products get grids for what they read at each run
  training,              ///< as a trainer changes it: normalizations and activations are nodes, out of training mode
  equalization,          ///< what follows in training where layers are equalized, which looks at layers as they will be
};

/// Runs its passes, in order. Throws as they do; the graph is then of no use.
void run_passes(Graph &g, Pipeline pipeline);

/// What follows Pipeline::quantization, so that one grid is behind a layer or a formula in place of one behind each of
/// its terms: scales are part of layers, and formulas are operators, where the filters hold.
void join_under_grids(Graph &g, const NodeFilter &scales, const NodeFilter &formulas);

}  // namespace qtn::graph
