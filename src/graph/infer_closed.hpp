// SPDX-License-Identifier: Apache-2.0
// Inference of what no open dimension has a part in, for graphs that take no batch which is tried.
#pragma once

#include <algorithm>

#include "graph/graph.hpp"

namespace qtn::graph {

/// Whether the file leaves a dimension or the shape of an input open.
inline bool is_open(const Value &input) {
  return !input.shape || std::ranges::any_of(*input.shape, [](std::int64_t dim) { return dim < 0; });
}

/// As infer_partly(), where nothing is known of inputs that leave a dimension open.
PartlyInferred infer_closed(const Graph &g);

}  // namespace qtn::graph
