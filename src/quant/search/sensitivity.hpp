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

/// The noise of the outputs where those nodes stay in float and all others are quantized.
Noise noise_without(const graph::Graph &real, const graph::Graph &quantized, const Samples &samples,
                    std::span<const std::size_t> in_float);

}  // namespace qtn::quant
