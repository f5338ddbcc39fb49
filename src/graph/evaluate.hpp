// SPDX-License-Identifier: Apache-2.0
// Runs a graph node by node with the operators' own definitions. Slow and simple: constant folding uses
// it, and the reference engine is it.
#pragma once

#include "graph/control.hpp"

namespace qtn::graph {

/// One node on operands that are there, an absent one nullptr: its outputs, quantized where `quantizers` has one for
/// them. Throws QTN_ENOMEM where they and the `held` bytes of other values are over the limit.
std::vector<Tensor> run_node(const Node &node, std::span<const Tensor *const> operands,
                             std::span<const QuantizerPtr> quantizers, const RunBody &run_body, std::size_t held,
                             std::size_t limit);

/// Outputs for the given inputs. A value's quantizer is applied where it is set; graph outputs are dequantized. Tensors
/// are freed after their last reader.
std::vector<Tensor> evaluate(const Graph &g, std::span<const Tensor> inputs);

}  // namespace qtn::graph
