// SPDX-License-Identifier: Apache-2.0
// Nodes that run graphs: If, Loop and Scan.
#pragma once

#include <functional>

#include "graph/graph.hpp"

namespace qtn::graph {

/// Runs a body of a node on as many inputs as it has.
using RunBody = std::function<std::vector<Tensor>(const Graph &body, std::span<const Tensor> inputs)>;

/// The outputs of a node that has bodies, contiguous and not quantized, as ONNX defines its operator. An absent operand
/// is nullptr; those on a grid are dequantized. Throws QTN_EINVAL where a condition is no single boolean, QTN_ESHAPE
/// where what is stacked differs in shape, QTN_ENOMEM where loops, nested ones together, take more than the limit
/// loop_iterations.
std::vector<Tensor> run_control(const Node &node, std::span<const Tensor *const> operands, const RunBody &run);

/// Which body an If runs where its condition is that constant.
std::size_t branch_of(const Tensor &condition);

}  // namespace qtn::graph
