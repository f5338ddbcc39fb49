// SPDX-License-Identifier: Apache-2.0
// Between ONNX's QuantizeLinear and DequantizeLinear nodes and the graph's quantizers of values.
#pragma once

#include "graph/graph.hpp"

namespace qtn::onnx {

/// Metadata of a model whose activations are rounded by another rule than ONNX's: key -> Numerics name.
inline constexpr const char *kNumericsKey = "qtensor.numerics";

/// Rewrites nodes that take constant scales and zero points as inputs (QLinearConv, QLinearAdd ...), and what moves
/// their integers about, as the same operators on real numbers between DequantizeLinear and QuantizeLinear, for
/// import_qdq(). The graph is sorted, and stays so.
void import_qoperators(graph::Graph &g);

/// Computes what nodes make of constants for QuantizeLinear and DequantizeLinear nodes of a sorted graph to read, and
/// drops casts of quantized integers to the type that they have.
void settle_constant_grids(graph::Graph &g);

/// Replaces the QuantizeLinear and DequantizeLinear nodes of a sorted graph that only say how a value is quantized by
/// quantizers with the given rounding rule. Others stay what they are: where another node reads the integers, or the
/// scale is computed, block-wise, or an activation's by channel. Throws QTN_EFORMAT or QTN_ESHAPE on scales and zero
/// points that do not fit.
void import_qdq(graph::Graph &g, Numerics numerics);

/// The inverse: a graph without quantizers, with the nodes that say the same. Values keep their names, except that the
/// name of a graph output goes to the value after DequantizeLinear. Names come out unique. Throws QTN_EUNSUPPORTED on a
/// grid that QuantizeLinear does not have: an activation's by channel, or one that does not reach over its whole type.
/// `weight_pairs`: constants of 8 bits are floats that QuantizeLinear makes the same integers of.
graph::Graph export_qdq(const graph::Graph &g, bool weight_pairs = false);

/// The inverse of import_qoperators(), on what export_qdq() made: operators between DequantizeLinear and QuantizeLinear
/// take and make the integers themselves, where ONNX or ONNX Runtime has such an operator. Others stay as they are.
void export_qoperators(graph::Graph &g);

}  // namespace qtn::onnx
