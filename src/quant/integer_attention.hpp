// SPDX-License-Identifier: Apache-2.0
// Attention whose two products are of integers.
#pragma once

#include "graph/passes/passes.hpp"

namespace qtn::quant {

/// The two MatMul of each softmax(f(queries keys)) values become DynamicMatMul, where both are `wanted`, nothing else
/// reads what lies between them, and queries, keys and values are made of the same tokens: caches, whose few queries
/// meet many keys, are read faster as they are. f multiplies, adds, chooses and reshapes. Few keys,
/// where shapes say so, stay in float. Keys are centered where
/// Softmax takes no notice of it.
void quantize_attention(graph::Graph &g, const graph::NodeFilter &wanted);

}  // namespace qtn::quant
