// SPDX-License-Identifier: Apache-2.0
// Weights that are stored as integers where activations have no grids of their own.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "quant/embedding.hpp"

namespace qtn::quant {

/// Puts integers in the places of constants. `who` begins messages.
class StoredWeights {
 public:
  StoredWeights(graph::Graph &g, const char *who) : g_(g), who_(who), embeddings_(g) {}

  /// The table of an embedding, or the weights of a recurrent layer, in mode weights_only those of int8. false: it is
  /// neither.
  bool quantize_table(graph::Node &node, const Settings &settings);

  /// The weights of a product. Nodes that read the same weights on the same grid share them.
  void quantize_product(graph::Node &node, const Settings &settings);

 private:
  graph::Graph &g_;
  const char *const who_;
  Embeddings embeddings_;
  std::map<std::pair<graph::ValueId, std::size_t>, std::vector<graph::ValueId>> made_;  ///< by weights and channel axis
};

/// Whether a node has a table or weights that quantize_table() takes.
bool has_table(const graph::Graph &g, const graph::Node &node, const Settings &settings);

/// Whether a node is a product of activations by constant weights that quantize_product() takes.
bool has_stored_weights(const graph::Graph &g, const graph::Node &node);

/// A scale for each channel in place of blocks.
void remove_blocks(Settings &settings);

/// Without blocks where the axis that they divide is shorter than one, or the layer is a recurrent one.
Settings with_fitting_blocks(const graph::Graph &g, const graph::Node &node, Settings settings);

}  // namespace qtn::quant
