// SPDX-License-Identifier: Apache-2.0
// Pairs of layers between which a factor for each channel can be moved without changing what the network computes.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.hpp"

namespace qtn::quant {

/// Only `to` reads what `from` makes, through nodes for which f(s x) = s f(x), s > 0, channel by channel.
struct Link {
  std::size_t from, to;   ///< node indexes: a Conv, Gemm (or, for from, LayerNormalization) and a Conv, Gemm or MatMul
  std::int64_t channels;  ///< of the output of `from`
};

/// Links of a graph that was optimized, in the order of its nodes.
std::vector<Link> find_links(const graph::Graph &g);

/// Whether both layers have a bias of one number for each channel, which offsets can be moved between.
bool has_biases(const graph::Graph &g, const Link &link);

/// Gives the nodes of the links, which have biases, constants that no other node reads. Before move_offsets().
void own_constants(graph::Graph &g, std::span<const Link> links);

/// Takes offsets[c] from the bias of channel c and adds what they make of it to the bias of the reader.
void move_offsets(graph::Graph &g, const Link &link, std::span<const float> offsets);

}  // namespace qtn::quant
