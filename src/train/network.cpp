// SPDX-License-Identifier: Apache-2.0
#include "train/network.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/error.hpp"
#include "graph/facts.hpp"
#include "graph/pipelines.hpp"

namespace qtn::train {
namespace {

using graph::Graph;
using graph::Node;
using graph::Uses;
using graph::ValueId;

/// The operand of an Add behind a product.
bool is_separate_bias(const Graph &g, const Uses &uses, const Node &node, std::size_t input) {
  if (node.op != &ops::kAdd) return false;
  const ValueId other = node.inputs[1 - input];
  const std::int32_t maker = uses.producer[static_cast<std::size_t>(other)];
  if (maker < 0) return false;
  return g.nodes[static_cast<std::size_t>(maker)].op->product != nullptr;
}

enum class Role { none, weight, offset };

/// What a constant is to the node that reads it.
Role role_of(const Graph &g, const Uses &uses, const Node &node, std::size_t input) {
  if (node.op->weights.holds(input)) return Role::weight;
  if (node.op->offsets.holds(input)) return Role::offset;
  return is_separate_bias(g, uses, node, input) ? Role::offset : Role::none;
}

Tensor zeros_like(const Tensor &t) {
  Tensor zeros(QTN_FLOAT32, t.shape());
  std::fill_n(zeros.as<float>(), zeros.count(), 0.0f);
  return zeros;
}

/// Weights that two nodes share have two grids: "w.scale", "w.scale_2".
std::string unused_name(const std::unordered_set<std::string> &taken, const std::string &name) {
  std::string unused = name;
  for (int i = 2; taken.contains(unused); ++i) unused = cat(name, "_", i);
  return unused;
}

}  // namespace

Network::Network(graph::Graph g, std::optional<Quantization> of_prepared)
    : graph(std::move(g)), quantization(std::move(of_prepared)) {
  graph::require_float(graph, "trainer");
  graph::run_passes(graph, graph::Pipeline::training);
  const Uses uses(graph);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node &node = graph.nodes[n];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (v == graph::kNoValue || parameter_of.count(v) || !graph.value(v).is_constant()) continue;
      const Tensor &constant = graph.value(v).constant;
      const Role role = role_of(graph, uses, node, i);
      if (role == Role::none || constant.dtype() != QTN_FLOAT32 || constant.count() == 0) continue;
      parameter_of[v] = parameters.size();
      parameters.push_back({graph.value(v).name, constant.clone(), zeros_like(constant), 1, role == Role::weight});
    }
    if (node.op->statistics.count == 0) continue;
    const ValueId of_mean = node.inputs[node.op->statistics.first],
                  of_variance = node.inputs[node.op->statistics.first + 1];
    if (graph.value(of_mean).is_constant() && graph.value(of_variance).is_constant()) {
      const Tensor mean = graph.value(of_mean).constant.clone();
      const Tensor variance = graph.value(of_variance).constant.clone();
      statistics[n] = {of_mean,
                       of_variance,
                       mean,
                       variance,
                       mean.clone(),
                       variance.clone(),
                       node.attrs.get_float("momentum", 0.9),
                       std::vector<Statistics::OfChannel>(static_cast<std::size_t>(mean.count()))};
      buffers.push_back({node.name + ".running_mean", mean});
      buffers.push_back({node.name + ".running_var", variance});
    }
  }
  if (!quantization) return;
  first_of_grids = parameters.size();
  std::unordered_set<std::string> names;
  for (const Parameter &p : parameters) names.insert(p.name);
  for (Parameter &p : quantization->parameters) {
    p.name = unused_name(names, p.name);
    names.insert(p.name);
    parameters.push_back(p);
  }
}

graph::Graph Network::snapshot() const {
  Graph g = graph;
  for (const auto &[v, i] : parameter_of) g.value(v).constant = parameters[i].value.clone();
  for (const auto &[node, s] : statistics) {
    g.value(s.mean_id).constant = s.mean.clone();
    g.value(s.variance_id).constant = s.variance.clone();
  }
  return g;
}

std::optional<quant::PreparedModel> Network::prepared() const {
  if (!quantization) return std::nullopt;
  quant::Training training{snapshot()};
  training.weights = quantization->weight_quantizers(graph);
  training.weight_ranges = quantization->weight_ranges(graph);
  for (const ActivationGrid &grid : quantization->activations) training.grids[grid.name()] = grid.quantizer();
  return quant::prepare(std::move(training), quantization->config);
}

std::vector<Tensor> Network::state() const {
  std::vector<Tensor> state;
  for (const Parameter &p : parameters) state.push_back(p.value);
  for (const auto &[node, s] : statistics) {
    state.push_back(s.mean);
    state.push_back(s.variance);
  }
  return state;
}

void Network::commit() {
  for (auto &[node, s] : statistics) {
    if (!s.measured) continue;
    s.measured = false;
    const std::size_t earlier = s.batches++;
    const auto mix = [keep = s.keep, earlier](const Tensor &running, const Tensor &next, std::size_t c, double seen) {
      const double moved = keep * static_cast<double>(running.as<const float>()[c]) + (1 - keep) * seen;
      next.as<float>()[c] = mean_of_batches(next.as<const float>()[c], static_cast<float>(moved), earlier);
    };
    for (std::size_t c = 0; c < s.batch.size(); ++c) {
      mix(s.mean, s.next_mean, c, s.batch[c].mean);
      mix(s.variance, s.next_variance, c, s.batch[c].variance);
    }
  }
  if (quantization) quantization->commit();
}

void Network::follow() {
  if (quantization) quantization->follow();
}

void Network::revert() {
  for (auto &[node, s] : statistics) s.measured = false;
  if (quantization) quantization->revert();
}

void Network::update_statistics() {
  for (auto &[node, s] : statistics) {
    if (std::exchange(s.batches, 0) == 0) continue;
    copy_elements(s.mean, s.next_mean);
    copy_elements(s.variance, s.next_variance);
  }
}

}  // namespace qtn::train
