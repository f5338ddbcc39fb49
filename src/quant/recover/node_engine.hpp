// SPDX-License-Identifier: Apache-2.0
// The nodes of a graph, one at a time, each a session of its own, made when it first runs: they are fast, and their bits
// are those of every machine, whatever its BLAS.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "graph/graph.hpp"
#include "runtime/session.hpp"

namespace qtn::quant {

class NodeEngine {
 public:
  /// The graph stays with the caller, who may change nodes that have not run.
  explicit NodeEngine(const graph::Graph &g) : g_(g) {}

  const graph::Graph &graph() const { return g_; }

  /// What node n makes of these operands, in floats. A value with a quantizer is rounded to its grid.
  std::vector<Tensor> run(std::size_t n, std::span<const Tensor *const> operands);

  /// Gives back what node n has made.
  void forget(std::size_t n) { sessions_.erase(n); }

 private:
  const runtime::Session &session_of(std::size_t n, std::span<const Tensor *const> operands);

  const graph::Graph &g_;
  std::map<std::size_t, std::unique_ptr<const runtime::Session>> sessions_;
};

}  // namespace qtn::quant
