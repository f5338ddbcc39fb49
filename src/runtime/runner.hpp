// SPDX-License-Identifier: Apache-2.0
// Runs an optimized graph: by a plan for each set of input shapes, and where shapes depend on data, in stages.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/buffer_reuse.hpp"
#include "runtime/plan_cache.hpp"
#include "runtime/run_pool.hpp"

namespace qtn::runtime {

/// What a step took.
struct StepTime {
  std::string node, op, kernel;
  bool integer = false;
  std::int64_t macs = 0;
  std::size_t bytes = 0;  ///< of what it reads and writes
  double ms = 0;
};

/// What a run is looked at by.
struct Look {
  const Watch *watch = nullptr;            ///< shown the values that the runner watches
  std::vector<StepTime> *times = nullptr;  ///< a clock around each step
  std::size_t *plan_bytes = nullptr;       ///< memory of the plans that ran is added to it
};

class Runner {
 public:
  /// The graph as passes have left it, and the values to watch, of which those that are not float32 are never shown.
  /// A part keeps no large memory for other shapes.
  Runner(graph::Graph g, std::vector<graph::ValueId> watched, const Within &within = {});
  ~Runner();

  const graph::Graph &graph() const { return graph_; }

  /// Makes the plan for inputs of these types, unless shapes depend on data.
  void plan_declared(const std::vector<ops::TensorType> &types) { plans_.plan_declared(types); }

  /// Inputs that fit the graph, of any strides. `outputs` may be empty: then they are only computed. Safe from many
  /// threads at once. `places` may be empty; an output whose place is contiguous memory of its type and shape comes
  /// there, where its plan can write it at once. Places are no memory of inputs.
  void run(std::span<const Tensor *const> inputs, std::span<Tensor> outputs, const Look &look,
           std::span<const Tensor> places = {}) const;

  /// What packed weights take.
  std::size_t weights_bytes() const;

 private:
  class Stages;
  using StagesPtr = std::shared_ptr<const Stages>;
  struct Staged;

  /// Frees memory of runs beyond what may be idle, before there is more of it.
  void free_idle() const;
  /// Gives it memory for as many threads as there are now.
  void prepare(PreparedRun &run) const;
  void run_plan(PreparedRunPtr prepared, std::span<const Tensor *const> inputs, std::span<Tensor> outputs,
                const Look &look, std::span<const Tensor> places) const;
  void run_stages(const Stages &stages, std::span<const Tensor *const> inputs, std::span<Tensor> outputs,
                  const Look &look) const;
  StagesPtr find_stages(std::span<const Tensor *const> inputs) const;
  StagesPtr make_stages(Outlook &by_types, Outlook &by_values) const;

  graph::Graph graph_;
  std::vector<graph::ValueId> watched_;
  Within within_;
  mutable PlanCache plans_;
  mutable RunPool pool_;
  mutable std::mutex mutex_;
  mutable std::vector<Staged> staged_;                                  ///< the latest last
  mutable std::map<std::vector<std::int64_t>, StagesPtr> by_division_;  ///< those that are in `staged_`, and others
  mutable std::atomic<bool> is_staged_{false};
  mutable std::vector<std::unique_ptr<KeptBlocks>> idle_blocks_;  ///< of runs in stages that were at once
};

}  // namespace qtn::runtime
