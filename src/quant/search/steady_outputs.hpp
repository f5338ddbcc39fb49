// SPDX-License-Identifier: Apache-2.0
// Outputs that a small error changes a little.
#pragma once

#include <vector>

#include "graph/graph.hpp"

namespace qtn::quant {

/// For each output of the graph, whether it follows from the inputs without integers that are computed from floats. Behind
/// such integers, which say for example which boxes a detector keeps, the smallest error may give something else, so that
/// a ratio to the noise tells little. True for all outputs where it would be for none that is a float.
std::vector<bool> steady_outputs(const graph::Graph &g);

}  // namespace qtn::quant
