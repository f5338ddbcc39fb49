// SPDX-License-Identifier: Apache-2.0
// A graph in parts, where shapes depend on data: what can be planned runs by a plan, up to the nodes that cannot; these
// run by their definitions, and with the shapes of what they made the next part is planned. Each part is a graph of its
// own, so that what a stage costs depends on what it holds, and not on all that follows.
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
  /// The graph outlives them.
  Stages(const graph::Graph &g, const Division &division, const std::vector<graph::ValueId> &watched,
         const Within &within);

  void run(std::span<const Tensor *const> inputs, std::span<Tensor> outputs, const Look &look) const;

  std::size_t weights_bytes() const;

 private:
  struct Part {
    std::unique_ptr<Runner> runner;
    std::vector<graph::ValueId> ids;  ///< by value of its graph: in the whole one
  };
  struct Stage {
    std::vector<std::size_t> nodes, stops;  ///< of the whole graph
    std::optional<Part> part;               ///< of the nodes; the stops come after it
  };
  using Values = std::vector<Tensor>;  ///< by value id of the whole graph
  void cut(const Division &division);
  void add_part(Stage &stage) const;
  /// Whether an If whose branch a run has chosen becomes that branch.
  bool takes_branches() const;
  Within part_of_whole() const { return {true, constants_, depth_ + 1}; }
  void run_part(const Part &part, Values &values, const Look &look) const;
  void run_stop(const graph::Node &node, Values &values, std::size_t limit, const Look &look) const;
  Tensor read(graph::ValueId v, const Values &values) const;

  const graph::Graph &graph_;
  std::vector<bool> is_watched_, is_held_;  ///< by value; held: read by others than the part that makes it
  std::size_t constants_;                   ///< bytes of the whole model's
  std::size_t depth_;                       ///< of runs within runs
  std::unique_ptr<Runner> whole_;  ///< where branches took the place of their nodes; then there is nothing else
  std::vector<Stage> stages_;
  std::map<const graph::Graph *, std::unique_ptr<Runner>> bodies_;
};

}  // namespace qtn::runtime
