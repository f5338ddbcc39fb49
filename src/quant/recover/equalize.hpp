// SPDX-License-Identifier: Apache-2.0
// Rewrites of a float graph that leave its function as it is and make it easier to quantize.
#pragma once

#include <functional>

#include "graph/graph.hpp"
#include "quant/samples.hpp"

namespace qtn::quant {

/// Cross-layer equalization (Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction",
/// 2019): the weights and the bias that make a channel reach as far as the weights that read it, in pairs of layers for
/// which `wanted` says yes to both. Factors are bounded, and channels that hardly count keep theirs. False where ranges
/// are equal enough already; the graph is then as it was.
bool equalize_weights(graph::Graph &g, const std::function<bool(const graph::Node &)> &wanted);

/// SmoothQuant (Xiao et al., 2022): channels of activations that are larger than the others are divided by
/// max|x|^strength / max|w|^(1 - strength), which the weights of the reader take over. False where no two layers are
/// linked.
bool equalize_activations(graph::Graph &g, const Samples &samples, double strength);

/// After equalize_weights(): what a channel before a Relu always exceeds on the samples moves from the bias of its
/// layer into the bias of the reader, so that the range of the activation begins at zero. Readers with padding keep
/// theirs, for there the moved constant would be missing. False where no two layers are linked so.
bool absorb_biases(graph::Graph &g, const Samples &samples);

}  // namespace qtn::quant
