// SPDX-License-Identifier: Apache-2.0
#include "quant/prepare.hpp"

#include <algorithm>
#include <unordered_set>

#include "base/error.hpp"
#include "graph/facts.hpp"
#include "graph/passes/passes.hpp"
#include "graph/pipelines.hpp"
#include "quant/copies.hpp"
#include "quant/fingerprint.hpp"
#include "quant/mask.hpp"
#include "quant/recover/equalize.hpp"
#include "quant/rule_targets.hpp"
#include "quant/stored_weights.hpp"

namespace qtn::quant {

namespace {

std::vector<std::string_view> quantized_names(const graph::Graph &g, const Placement &placement) {
  std::vector<std::string_view> names;
  for (const Group &group : placement.groups)
    for (const graph::ValueId v : group.members) names.push_back(g.value(v).name);
  return names;
}

/// The filter for nodes in whose settings a switch is on.
auto nodes_with(const Config &config, bool Settings::*is_set) {
  return [&config, is_set](const graph::Node &node) {
    const std::optional<Settings> settings = config.settings_for(node);
    return settings && (*settings).*is_set;
  };
}

/// For a normalization that was trained in float: one weight for each channel is the largest integer of its grid.
void keep_exact(NodePlan &plan) {
  if (!plan.settings) return;
  remove_blocks(*plan.settings);
  plan.settings->weight.set("narrow_range", std::int64_t{1});
}

/// The filter for nodes of which no rule says anything, nor of what they make.
auto nodes_without_rules(const Config &config, const graph::Graph &g) {
  return [&config, &g](const graph::Node &node) {
    return !config.selects(node) && !config.names_tensor(g.value(node.outputs[0]).name);
  };
}

/// Fake quantization, which training learns with, is that of grids which stay.
void require_static(const graph::Graph &g, const Placement &placement) {
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    const std::optional<Settings> &settings = placement.nodes[n].settings;
    if (settings && settings->mode != Mode::fixed)
      fail(QTN_EUNSUPPORTED, "prepare: node \"", g.nodes[n].name, "\" has mode \"",
           settings->keys.get_string("mode", ""), "\", and training knows \"static\" alone");
  }
}

std::vector<std::unique_ptr<Observer>> observers_of(const Placement &placement) {
  std::vector<std::unique_ptr<Observer>> observers;
  for (const Group &group : placement.groups)
    observers.push_back(group.fixed ? nullptr
                                    : make_observer(group.settings.activation_observer, group.settings.activation));
  return observers;
}

/// The model as it was before it was calibrated.
PreparedModel without_observers(const PreparedModel &prepared, const Config &config) {
  return {.graph = prepared.graph,
          .config = config,
          .placement = prepared.placement,
          .engine = prepared.engine,
          .model = prepared.model,
          .equalized = prepared.equalized};
}

/// Before settings change the graph: it has what the configuration names, and is known by its fingerprint.
void identify(PreparedModel &prepared, const graph::Graph &model) {
  require_nodes(prepared.config, model, prepared.graph);
  require_outputs(prepared.config, prepared.graph);
  prepared.model = fingerprint(prepared.graph);
}

/// `of_norms`: the names of normalizations that have become layers.
void place_observers(PreparedModel &prepared, const graph::Graph &model, const std::vector<std::string> &of_norms) {
  const std::unordered_set<std::string_view> names(of_norms.begin(), of_norms.end());
  for (std::size_t n = 0; n < prepared.graph.nodes.size(); ++n)
    if (names.contains(prepared.graph.nodes[n].name)) keep_exact(prepared.placement.nodes[n]);
  require_tensors(prepared.config, model, prepared.graph, quantized_names(prepared.graph, prepared.placement));
  prepared.observers = observers_of(prepared.placement);
}

PreparedModel prepare_float(const graph::Graph &model, const Config &config) {
  PreparedModel prepared{.graph = model, .config = config};
  graph::Graph &g = prepared.graph;
  graph::run_passes(g, graph::Pipeline::lone_norms);
  const std::vector<std::string> of_norms = graph::insert_depthwise_before_norms(g);
  graph::run_passes(g, graph::Pipeline::quantization);
  identify(prepared, model);
  const auto free = nodes_without_rules(config, g);
  const auto one_by_one = nodes_with(config, &Settings::fixed_outputs);
  graph::join_under_grids(
      g, [&](const graph::Node &node) { return free(node) && !one_by_one(node); }, free);
  graph::replace_relu6(g, nodes_with(config, &Settings::replace_relu6));
  prepared.equalized = equalize_weights(g, nodes_with(config, &Settings::equalize));
  prepared.placement = place(g, config);
  if (copy_for_integer_readers(g, prepared.placement, config)) prepared.placement = place(g, config);
  place_observers(prepared, model, of_norms);
  return prepared;
}

/// Equalization looks at layers as they will be: where it is asked for, normalizations are folded before training.
Training training_of(const graph::Graph &float_graph, const Config &config) {
  Training training{float_graph};
  graph::Graph &g = training.graph;
  graph::run_passes(g, graph::Pipeline::training);
  const auto equalized = nodes_with(config, &Settings::equalize);
  const bool equalizes = std::any_of(g.nodes.begin(), g.nodes.end(), equalized);
  if (equalizes) graph::run_passes(g, graph::Pipeline::equalization);
  graph::normalize_products(g);
  graph::replace_relu6(g, nodes_with(config, &Settings::replace_relu6));
  if (equalizes) equalize_weights(g, equalized);
  graph::separate_clamps(g);
  return training;
}

}  // namespace

PreparedModel prepare(const graph::Graph &float_graph, const Config &config, qmode mode) {
  graph::require_float(float_graph, "prepare");
  return mode == QTN_QAT ? prepare(training_of(float_graph, config), config) : prepare_float(float_graph, config);
}

PreparedModel prepare(Training training, const Config &config) {
  PreparedModel prepared{.graph = training.graph, .config = config, .training = std::move(training)};
  graph::Graph &g = prepared.graph;
  const graph::Graph &model = prepared.training->graph;
  // Constants are folded, and Dropout stays. A trainer folds what it finds directly behind a layer, nothing farther away.
  const std::vector<std::string> of_norms = graph::insert_depthwise_before_norms(g);
  graph::run_passes(g, graph::Pipeline::training_grids);
  identify(prepared, model);
  graph::replace_relu6(g, nodes_with(config, &Settings::replace_relu6));
  prepared.placement = place(g, config, true);
  require_static(g, prepared.placement);
  place_observers(prepared, model, of_norms);
  return prepared;
}

QuantizerPtr trained_grid(const Training &training, const graph::Graph &g, const Group &group) {
  for (const graph::ValueId v : group.members)
    if (const auto grid = training.grids.find(g.value(v).name); grid != training.grids.end()) return grid->second;
  return nullptr;
}

std::unique_ptr<Observer> with_constants(const graph::Graph &g, std::span<const graph::ValueId> constants,
                                         const Observer &observed) {
  std::unique_ptr<Observer> all = observed.clone();
  for (const graph::ValueId v : constants)
    if (const Tensor &constant = g.value(v).constant; !is_mask(constant, observed)) all->observe(constant);
  return all;
}

QuantizerPtr observed_grid(const graph::Graph &g, const Group &group, const Observer &observed) {
  const std::unique_ptr<Observer> all = with_constants(g, group.constants, observed);
  if (all->empty()) return nullptr;
  QuantizerPtr chosen = all->quantizer();
  if (group.settings.margin == 0) return chosen;
  return std::make_shared<Quantizer>(chosen->dtype(), chosen->scheme(), chosen->axis(),
                                     std::vector{chosen->scale() * (1 + group.settings.margin)}, chosen->zero_points(),
                                     chosen->numerics());
}

std::vector<std::unique_ptr<Observer>> observers_like(const PreparedModel &prepared, const Placement &placement) {
  std::vector<std::unique_ptr<Observer>> observers;
  for (std::size_t g = 0; g < placement.groups.size(); ++g) {
    const Group &group = placement.groups[g];
    const auto &old = prepared.observers[g];
    const std::string kind = old ? std::string(old->kind()) : group.settings.activation_observer;
    observers.push_back(group.fixed ? nullptr : make_observer(kind, group.settings.activation));
  }
  return observers;
}

PreparedModel observed_anew(const PreparedModel &prepared, const Config &config, const char *observer) {
  PreparedModel fresh = without_observers(prepared, config);
  fresh.distributions.resize(prepared.distributions.size());
  if (observer) {
    for (NodePlan &plan : fresh.placement.nodes)
      if (plan.settings) plan.settings->activation_observer = observer;
    for (Group &group : fresh.placement.groups) group.settings.activation_observer = observer;
  }
  fresh.observers = observer ? observers_of(fresh.placement) : observers_like(prepared, fresh.placement);
  return fresh;
}

PreparedModel copy_of(const PreparedModel &prepared) {
  PreparedModel copy = without_observers(prepared, prepared.config);
  for (const auto &observer : prepared.observers) copy.observers.push_back(observer ? observer->clone() : nullptr);
  copy.samples = prepared.samples;
  copy.distributions = prepared.distributions;
  return copy;
}

}  // namespace qtn::quant
