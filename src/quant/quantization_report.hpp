// SPDX-License-Identifier: Apache-2.0
// What a quantization tells its caller: what was tried and kept, how exact the model is, what stayed in float and why.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/inspect.hpp"
#include "quant/outcome.hpp"
#include "quant/search/accuracy.hpp"
#include "quant/search/observers.hpp"
#include "quant/search/precision.hpp"
#include "quant/search/sensitivity.hpp"
#include "quant/search/speed.hpp"
#include "quant/search/trial.hpp"

namespace qtn::quant {

/// In dB: a network whose outputs are farther from those in float than the first is of no use, so that by default, too,
/// layers stay in float, until it comes as near as the second: on samples that chose no layers it will be less.
inline constexpr double kUseless = 20, kUseful = 25;

/// A training that was part of it.
struct Course {
  std::size_t steps = 0, planned = 0;  ///< fewer than planned where the caller ended it
  std::vector<double> losses;          ///< of each epoch, the mean over its steps
};

/// What was done, and why.
struct QuantizationReport {
  bool equalized = false, bias_corrected = false, rounding_learned = false;
  std::size_t samples = 0;                ///< that calibrated, each row of a batch being one
  std::vector<std::string> warnings;      ///< about the samples
  std::vector<Trial> trials;              ///< in their order
  std::optional<Accuracy> accuracy;       ///< on held-back samples, of the model whose ranges come from the others
  std::size_t judges = 0;                 ///< rows of these
  bool held_back = false;                 ///< there were others; false: of the converted model on what calibrated it
  bool automatic = false;                 ///< "auto" was asked for
  std::vector<ObserverChoice> observers;  ///< where they were chosen by measuring
  Targets targets, reached;               ///< what was wanted, and what the converted model has of it
  std::vector<TimedMode> modes;           ///< that meet the targets, where they were timed
  std::vector<FallenLayer> fallen;        ///< for the targets
  bool wide = false;                      ///< they fell back to int16, not to float
  std::vector<std::string> nodes, ops;    ///< of all nodes
  graph::NodeCounts counts;               ///< of the nodes that a session runs
  std::vector<Sensitivity> layers;        ///< where "sensitivity" was asked for
  std::vector<TensorOutcome> tensors;
  std::vector<Fusion> fused;
  std::vector<FloatNode> float_nodes;
  std::optional<Course> course;

  /// Fills in what follows from the models alone: the names of nodes, tensors, fused, float_nodes, equalized.
  void describe(const graph::Graph &float_graph, const PreparedModel &prepared, const graph::Graph &quantized);

  /// docs/quantization.md has the members.
  std::string json() const;
};

/// What can still be done where outputs are far from those in float; "" where nothing need be, or a target has said what
/// is wanted.
std::string next_step(const QuantizationReport &report);

}  // namespace qtn::quant
