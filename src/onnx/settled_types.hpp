// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.hpp"

namespace qtn::onnx {

/// Types that a file leaves out or has otherwise than the network around them, in a sorted graph. Inputs and outputs of
/// bodies get those that the nodes around them and inside say, where these are not float32: what a Loop makes of no
/// iteration has a type, too. Bounds of a Clip and the number of a Pad that were attributes, which are float32, become
/// what they meet.
void settle_types(graph::Graph &g);

}  // namespace qtn::onnx
