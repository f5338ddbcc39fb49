// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.hpp"

namespace qtn::onnx {

/// Large constants of float32 which a file had as float16 or bfloat16 become that again, where it holds each of their
/// elements exactly; nodes Cast make floats of them. What stays in float takes no more of a file than it did.
void store_in_halves(graph::Graph &g);

}  // namespace qtn::onnx
