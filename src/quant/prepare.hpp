// SPDX-License-Identifier: Apache-2.0
// Quantization in three steps: prepare a float graph; calibrate it (calibrate.hpp), or train it; convert it.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "quant/config.hpp"
#include "quant/distribution.hpp"
#include "quant/observe/observer.hpp"
#include "quant/placement.hpp"
#include "runtime/watched.hpp"

namespace qtn::quant {

/// What quantization-aware training works on.
struct Training {
  graph::Graph graph;  ///< of the same meaning as PreparedModel::graph, but normalizations and activations are nodes
  std::map<std::string, QuantizerPtr> grids = {};    ///< once trained, by a tensor of a group; null: nothing was seen
  std::map<std::string, QuantizerPtr> weights = {};  ///< those that were learned, by node
  std::map<std::string, Tensor> weight_ranges = {};  ///< moving averages of minima and maxima, float32 [2, grids]
};

/// The trained grid of a group of `g`; null where there is none: the groups of a network follow from its weights, too.
QuantizerPtr trained_grid(const Training &training, const graph::Graph &g, const Group &group);

/// As if it had seen these constants, masks left out, too.
std::unique_ptr<Observer> with_constants(const graph::Graph &g, std::span<const graph::ValueId> constants,
                                         const Observer &observed);

/// The grid of a group over what was observed and the constants that share it, with its margin; null where there
/// is nothing.
QuantizerPtr observed_grid(const graph::Graph &g, const Group &group, const Observer &observed);

struct PreparedModel {
  graph::Graph graph;  ///< optimized, float, equalized where the config says so
  Config config;
  Placement placement = {};
  std::vector<std::unique_ptr<Observer>> observers = {};  ///< one for each group of the placement
  std::size_t samples = 0;                                ///< calibrate() calls that succeeded
  std::shared_ptr<runtime::Watched> engine = {};          ///< made at the first of them; runs the graph
  std::uint64_t model = 0;                                ///< fingerprint of the graph before settings changed it
  std::vector<Distribution> distributions = {};  ///< one for each group, or none where they will not be looked at
  std::optional<Training> training = {};         ///< of QTN_QAT
  bool equalized = false;                        ///< weights were
};

/// Optimizes a copy and decides what will be quantized. Throws QTN_EUNSUPPORTED on a graph that is quantized already,
/// QTN_EINVAL where the configuration names a node or a tensor that is not there.
PreparedModel prepare(const graph::Graph &float_graph, const Config &config, qmode mode = QTN_PTQ);

/// The same for what prepare() with QTN_QAT has made and training has changed.
PreparedModel prepare(Training training, const Config &config);

/// New observers of the same kinds, for a placement of the same groups.
std::vector<std::unique_ptr<Observer>> observers_like(const PreparedModel &prepared, const Placement &placement);

/// The model before it was calibrated, with observers of this kind for all activations, nullptr: as they are. `config`
/// says the same. Both share an engine.
PreparedModel observed_anew(const PreparedModel &prepared, const Config &config, const char *observer);

/// A model of QTN_PTQ as it is, calibrated or not. Both share an engine.
PreparedModel copy_of(const PreparedModel &prepared);

/// The quantized graph. `attrs` may be nullptr; no keys in this version. Throws QTN_ESTATE before calibration, with
/// QTN_QAT before training.
graph::Graph convert(const PreparedModel &prepared, const Attrs *attrs);

}  // namespace qtn::quant
