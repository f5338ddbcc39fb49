// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "graph/graph.hpp"

namespace qtn::graph {

/// By value id: whether its rank may follow from lengths that inputs leave open, so that no trial with some lengths says
/// what it is with others. A Squeeze without axes takes away all that happen to be 1.
std::vector<bool> varying_ranks(const Graph &g);

}  // namespace qtn::graph
