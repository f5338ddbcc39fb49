// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and RNN with weights of 8 bits.
#pragma once

#include "graph/graph.hpp"
#include "quant/config.hpp"

namespace qtn::quant {

/// An LSTM, GRU or RNN whose weights W and R are float constants.
bool is_recurrent(const graph::Graph &g, const graph::Node &node);

/// Puts quantized constants in the places of W and R, a grid for each row of a gate, which directions share, or for the
/// tensor. `who` begins messages. Throws QTN_EUNSUPPORTED for weights in blocks.
void quantize_recurrent(graph::Graph &g, graph::Node &node, const Settings &settings, const char *who);

}  // namespace qtn::quant
