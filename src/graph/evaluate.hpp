// SPDX-License-Identifier: Apache-2.0
// Runs a graph node by node with the operators' own definitions. Slow and simple: calibration watches it, constant
// folding uses it, and the reference engine is it.
#pragma once

#include <functional>

#include "graph/graph.hpp"

namespace qtn::graph {

/// Called with each activation of floating type (graph inputs included) as it is computed.
using Watch = std::function<void(ValueId, const Tensor &)>;

/// Outputs for the given inputs. A value's quantizer is applied where it is set; graph outputs are dequantized. Tensors
/// are freed after their last reader.
std::vector<Tensor> evaluate(const Graph &g, std::span<const Tensor> inputs, const Watch &watch = nullptr);

}  // namespace qtn::graph
