// SPDX-License-Identifier: Apache-2.0
// Attention whose two products are of integers: a rewrite that rounds.
#pragma once

#include <functional>

#include "graph/graph.hpp"

namespace qtn::graph {

/// What the products of attention are computed in.
enum class AttentionMode {
  in_float,
  automatic,  ///< integers where there are many keys, and no token is to be hidden from others
  dynamic,    ///< integers in every form that is known
};

/// The two MatMul of each softmax(f(queries keys)) values become DynamicMatMul, as the lesser of their modes says. f
/// multiplies, adds, chooses and reshapes, and nothing else reads what lies between. Queries, keys and values are made
/// of the same tokens: caches, whose few queries meet many keys, are read faster as they are. Keys are centered where
/// Softmax takes no notice of it.
///
/// The automatic mode leaves in float what has few keys, or an unknown number of them; and what hides tokens from some
/// queries and shows them to others: the grids of keys and values depend on all tokens, by which those to come would
/// show through.
void quantize_attention(Graph &g, const std::function<AttentionMode(const Node &)> &mode_of);

}  // namespace qtn::graph
