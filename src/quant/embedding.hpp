// SPDX-License-Identifier: Apache-2.0
// Tables of embeddings as integers: a Gather of rows of a constant.
#pragma once

#include <map>

#include "graph/graph.hpp"
#include "quant/config.hpp"

namespace qtn::quant {

/// A Gather of rows of a float constant [rows][columns] that is large enough to be a table.
bool is_embedding(const graph::Graph &g, const graph::Node &node);

/// Puts integers in the places of tables, a grid for each row, for blocks along rows, or for the tensor, as settings of
/// weights say.
class Embeddings {
 public:
  explicit Embeddings(graph::Graph &g) : g_(g) {}

  /// `who` begins messages.
  void quantize(graph::Node &node, const Settings &settings, const char *who);

 private:
  graph::Graph &g_;
  std::map<graph::ValueId, graph::ValueId> made_;  ///< one for all nodes that read a table
};

}  // namespace qtn::quant
