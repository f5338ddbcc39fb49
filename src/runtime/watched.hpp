// SPDX-License-Identifier: Apache-2.0
// A float graph that shows values as they are computed: what calibration runs.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "graph/graph.hpp"
#include "runtime/step.hpp"

namespace qtn::runtime {

class Runner;

class Watched {
 public:
  /// A copy of the graph, which shares its constants. Values that are not float32 are never shown.
  Watched(const graph::Graph &g, const std::vector<graph::ValueId> &values);
  ~Watched();
  Watched(Watched &&) noexcept;
  Watched &operator=(Watched &&) noexcept;

  /// Contiguous inputs that fit the graph. What `watch` throws ends the run.
  void run(std::span<const Tensor> inputs, const Watch &watch);

 private:
  std::unique_ptr<Runner> runner_;
};

}  // namespace qtn::runtime
