// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.hpp"
#include "graph/unique_names.hpp"

namespace qtn::onnx {

/// Nodes Resize of opset 10 that take the nearest element, also in bodies, round as attributes of later opsets say it.
void settle_nearest(graph::Graph &g, graph::UniqueNames &node_names);

}  // namespace qtn::onnx
