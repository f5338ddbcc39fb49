// SPDX-License-Identifier: Apache-2.0
// Runs a graph node by node with the operators' own definitions. Slow and simple: constant folding uses
// it, and the reference engine is it.
#pragma once

#include "graph/graph.hpp"

namespace qtn::graph {

/// Outputs for the given inputs. A value's quantizer is applied where it is set; graph outputs are dequantized. Tensors
/// are freed after their last reader.
std::vector<Tensor> evaluate(const Graph &g, std::span<const Tensor> inputs);

}  // namespace qtn::graph
