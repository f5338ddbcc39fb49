// SPDX-License-Identifier: Apache-2.0
// What became of the tensors and nodes of a float model.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quant/prepare.hpp"
#include "quant/search/precision.hpp"

namespace qtn::quant {

struct TensorOutcome {
  std::string name;
  std::vector<std::string> members;  ///< tensors on the same grid, of activations
  std::string node;                  ///< whose weight it is
  std::string observer;
  QuantizerPtr grid;
  std::optional<Distribution> seen;  ///< where histograms were asked for
};

/// Activations in the order of the network, then weights. `quantized` was converted from `prepared`.
std::vector<TensorOutcome> tensor_outcomes(const PreparedModel &prepared, const graph::Graph &quantized);

struct Fusion {
  std::string node, op, into;
};

/// Nodes of `before` that nodes of `after`, the same model optimized, do besides their own work.
std::vector<Fusion> fusions(const graph::Graph &before, const graph::Graph &after);

struct FloatNode {
  std::string node, op, reason;
};

/// Nodes that compute floats without integers, and why. `fallen` are those that fell back for a target.
std::vector<FloatNode> float_nodes(const PreparedModel &prepared, const graph::Graph &quantized,
                                   std::span<const FallenLayer> fallen);

}  // namespace qtn::quant
