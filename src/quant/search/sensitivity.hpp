// SPDX-License-Identifier: Apache-2.0
// Which layer hurts: what each quantized node costs on its own, and what has gathered where it stands.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "quant/samples.hpp"
#include "quant/search/noise.hpp"

namespace qtn::quant {

struct Sensitivity {
  std::size_t node;   ///< index, the same in both graphs
  Noise alone;        ///< of the outputs of the model where only this node is quantized
  Noise accumulated;  ///< of the outputs of the node in the quantized model
};

/// Every node of `quantized` that computes on integers, in the order of the network; moved integers cost nothing.
/// `real` is the graph that convert() made it of.
std::vector<Sensitivity> measure_sensitivity(const graph::Graph &real, const graph::Graph &quantized,
                                             const Samples &samples);

/// The nodes that round what they compute, or have weights that are rounded.
std::vector<std::size_t> nodes_that_round(const graph::Graph &quantized);

/// The network in which only those nodes are quantized: what they read and make is on its grids, for them alone. A session
/// of it says in one run what they cost together.
graph::Graph quantized_only(const graph::Graph &real, const graph::Graph &quantized,
                            std::span<const std::size_t> nodes);

}  // namespace qtn::quant
