// SPDX-License-Identifier: Apache-2.0
// Which of several models is the fastest on this machine.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "quant/samples.hpp"
#include "quant/search/targets.hpp"

namespace qtn::quant {

/// A mode of the products of features, as it was timed in turns with others.
struct TimedMode {
  std::string mode;
  double ms = 0;    ///< of a run of the model
  Targets reached;  ///< what there is a target for
  bool kept = false;
};

/// The milliseconds that a session of each takes for these inputs: the least of several runs, in turns.
std::vector<double> milliseconds_in_turns(std::span<const graph::Graph *const> models,
                                          const std::vector<Tensor> &inputs, const Progress &progress);

/// The index of the least, or of one before it that takes less than a twentieth longer, which clocks hardly tell.
std::size_t fastest(std::span<const double> milliseconds);

}  // namespace qtn::quant
