// SPDX-License-Identifier: Apache-2.0
// Between ONNX's QuantizeLinear and DequantizeLinear nodes and the graph's quantizers of values.
#pragma once

#include "graph/graph.hpp"

namespace qtn::onnx {

/// Exist only while a model is read or written; no other layer meets a node of these.
extern const ops::OpDef kQuantizeLinear;
extern const ops::OpDef kDequantizeLinear;

/// Metadata of a model whose activations are rounded by another rule than ONNX's: key -> Numerics name.
inline constexpr const char *kNumericsKey = "qtensor.numerics";

/// Replaces all QuantizeLinear and DequantizeLinear nodes of a sorted graph by quantizers with the given rounding rule.
/// Throws QTN_EUNSUPPORTED where the graph does arithmetic on integers, or quantizes by computed or block-wise scales.
void fold_qdq(graph::Graph &g, Numerics numerics);

/// The inverse: a graph without quantizers and clamps, with the nodes that say the same. Values keep their names,
/// except that the name of a graph output goes to the value after DequantizeLinear. Value names come out unique.
graph::Graph expand_qdq(const graph::Graph &g);

}  // namespace qtn::onnx
