// SPDX-License-Identifier: Apache-2.0
// A graph in parts, where shapes depend on data: what can be planned runs by a plan, up to the nodes that cannot; these
// run by their definitions, and with the shapes of what they made the rest is a graph of its own.
#pragma once

#include <optional>

#include "runtime/runner.hpp"

namespace qtn::runtime {

/// How a graph is divided for inputs of certain types.
struct Division {
  std::vector<std::int64_t> key;                     ///< equal for equal divisions
  std::vector<std::optional<std::size_t>> branches;  ///< by node: of an If whose condition is known; else `stops`
  std::vector<bool> is_first, is_stop;               ///< by node; the others are the rest
};

/// `known`: what is known before anything runs, of which some is not.
Division divide(const graph::Graph &g, const graph::PartlyInferred &known);

class Runner::Stages {
 public:
  Stages(const graph::Graph &g, const Division &division, const std::vector<graph::ValueId> &watched);

  void run(std::span<const Tensor *const> inputs, std::span<Tensor> outputs, const Look &look) const;

  std::size_t weights_bytes() const;

 private:
  using Values = std::vector<Tensor>;  ///< by value id
  void run_part(const Runner &part, Values &values, const Look &look) const;
  void run_stop(const graph::Node &node, Values &values, std::size_t limit, const Look &look) const;
  Tensor read(graph::ValueId v, const Values &values) const;

  graph::Graph graph_;
  std::vector<bool> is_watched_;
  std::size_t constants_;
  std::unique_ptr<Runner> whole_;  ///< where branches took the place of their nodes; then there is nothing else
  std::unique_ptr<Runner> first_, rest_;
  std::vector<std::size_t> stops_;
  std::map<const graph::Graph *, std::unique_ptr<Runner>> bodies_;
};

}  // namespace qtn::runtime
