// SPDX-License-Identifier: Apache-2.0
// What inputs leave open, and what is known of a graph all the same.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "graph/graph.hpp"

namespace qtn::graph {

/// Whether the file leaves a dimension or the shape of an input open.
inline bool is_open(const Value &input) {
  return !input.shape || std::ranges::any_of(*input.shape, [](std::int64_t dim) { return dim < 0; });
}

/// Types of inputs whose open dimensions have that length, so that graphs of unknown shapes have ranks and types, too;
/// nullopt where the file leaves even the number of dimensions open.
std::optional<std::vector<ops::TensorType>> trial_input_types(const Graph &g, std::int64_t length);

/// As infer_partly(), where nothing is known of inputs that leave a dimension open.
PartlyInferred infer_closed(const Graph &g);

}  // namespace qtn::graph
