// SPDX-License-Identifier: Apache-2.0
// Products that quantize x by its own values: one node in the graph, ONNX's own operators in files.
#pragma once

#include "graph/graph.hpp"

namespace qtn::onnx {

/// DynamicQuantizeMatMul of constant weights becomes ONNX's own operators, which give the same bits. The graph must be
/// sorted, and stays so.
void export_dynamic(graph::Graph &g);

/// The inverse, except for the bias, which remains an Add.
void import_dynamic(graph::Graph &g);

}  // namespace qtn::onnx
