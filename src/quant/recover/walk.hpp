// SPDX-License-Identifier: Apache-2.0
// Samples on their way through a graph, node by node, so that a node can be changed between seeing what comes to it and
// running it.
#pragma once

#include <vector>

#include "quant/recover/node_engine.hpp"

namespace qtn::quant {

/// The bytes of values that a walk of such inputs holds at once, as far as shapes can be known before it.
std::size_t walk_bytes(const graph::Graph &g, const graph::Uses &uses, std::span<const Tensor> inputs);

/// One sample. A value with a quantizer holds the reals that its integers stand for.
class Walk {
 public:
  /// `engine` and `uses` stay with the caller, who may change constants of nodes ahead.
  Walk(NodeEngine &engine, const graph::Uses &uses, const std::vector<Tensor> &inputs);

  /// Runs node n, which must be the next one. Frees what no node reads any more.
  void step(std::size_t n);

  /// Runs node n of another graph in the place of our own: its constants, on operands and to results on its grids. Both
  /// graphs have the same nodes.
  void step_as(std::size_t n, NodeEngine &other);

  /// A constant, or a value that was computed and still has a reader or is a graph output.
  const Tensor &at(graph::ValueId v) const;

 private:
  NodeEngine *engine_;
  const graph::Graph &g_;
  const graph::Uses &uses_;
  std::vector<Tensor> tensors_;
  std::vector<std::size_t> readers_left_;
};

}  // namespace qtn::quant
