// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.hpp"
#include "graph/unique_names.hpp"

namespace qtn::onnx {

/// A sorted network whose products, means or normalizations are of float64, or of float16 or bfloat16 with weights of
/// such a type or cast to it, computes in float32: its inputs and outputs of these types stay what they are, between
/// nodes Cast. Others compute in the types that they name. Bodies of If, Loop and Scan go with the network around them,
/// which computes in float32 also where one of them alone would.
void narrow_doubles(graph::Graph &g, graph::UniqueNames &value_names, graph::UniqueNames &node_names);

}  // namespace qtn::onnx
