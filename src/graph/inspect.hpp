// SPDX-License-Identifier: Apache-2.0
// A graph as text for people and programs.
#pragma once

#include <string>

#include "graph/graph.hpp"

namespace qtn::graph {

/// JSON: {"name", "inputs":[{"name","dtype","shape"}], "outputs":[...], "nodes":[{"name","op","dtype":"int8"|"float32",
/// "inputs","outputs","output_scale","output_zero_point"}], "parameters", "parameter_bytes", "float_nodes":[names]}.
/// The graph is shown as a session runs it: constants folded, activations fused. A node is int8 when it reads quantized
/// values and its kernel works on integers; "float_nodes" lists the others that compute.
std::string inspect_json(const Graph &g);

struct NodeCounts {
  std::size_t all = 0, integer = 0;
};

/// How many nodes inspect_json() lists, and how many of them are int8.
NodeCounts count_nodes(const Graph &g);

}  // namespace qtn::graph
