// SPDX-License-Identifier: Apache-2.0
// Nodes are kept in the form of opset 21; files may be written for others.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.hpp"

namespace qtn::onnx {

/// Shapes of all values where they can be known, those of an open batch for a batch of this size, also where nodes do not
/// fit together for it.
std::vector<std::optional<Shape>> shapes_at(const graph::Graph &g, std::int64_t batch);

/// Replaces Softmax over several axes as one (before opset 13) by nodes that say it at `opset`.
void write_out_flattened_softmax(graph::Graph &g, int opset);

/// Where `opset` has no such operator, replaces Gelu, HardSwish, Mish and Swish by their formulas, and those
/// LayerNormalization and RMSNormalization that readers find in theirs.
void write_out_formulas(graph::Graph &g, int opset);

/// Quantized constants of 2 or 4 bits as the same integers in the narrowest type that DequantizeLinear of `opset` has.
void widen_constants(graph::Graph &g, int opset);

/// The domain that a file of `opset` has the operator of the node in.
const char *domain_at(const graph::Node &node, int opset);

/// Rewrites the nodes of a graph that export_qdq() made to the form of `opset`. Throws QTN_EUNSUPPORTED naming the node
/// where that opset cannot say it.
void to_opset(graph::Graph &g, int opset);

}  // namespace qtn::onnx
