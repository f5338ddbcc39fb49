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

/// Constants that change apart from each other although the file has them once, as it may have equal tensors.
class Copies {
 public:
  explicit Copies(Graph &g) : g_(g) {
    const Uses uses(g);
    for (std::size_t v = 0; v < g.values.size(); ++v)
      readers_.push_back(uses.consumers[v].size() + (uses.is_output[v] ? 1 : 0));
  }

  std::size_t readers(ValueId v) const { return readers_[static_cast<std::size_t>(v)]; }

  /// What one of the readers of `v` is to read: `v` itself where it is the last one.
  ValueId own(ValueId v, const std::string &name) {
    if (readers(v) == 1) return v;
    --readers_[static_cast<std::size_t>(v)];
    graph::Value copy = g_.value(v);
    copy.name = g_.names.make(g_.values, name);
    return g_.add_value(std::move(copy));
  }

 private:
  Graph &g_;
  std::vector<std::size_t> readers_;  // by value
};

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
  }
  find_statistics();
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

void Network::find_statistics() {
  std::map<std::vector<ValueId>, std::size_t> first_with;          // node, by all that it reads besides x
  std::map<std::size_t, std::vector<std::size_t>> nodes_of_first;  // in their order
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node &node = graph.nodes[n];
    const ops::InputRange places = node.op->statistics;
    if (places.count == 0 || !graph.value(node.inputs[places.first]).is_constant() ||
        !graph.value(node.inputs[places.first + 1]).is_constant())
      continue;
    const std::vector<ValueId> operands(node.inputs.begin() + 1, node.inputs.end());
    nodes_of_first[first_with.try_emplace(operands, n).first->second].push_back(n);
  }
  Copies copies(graph);
  for (const auto &entry : nodes_of_first) {
    const Node &first = graph.nodes[entry.first];
    const std::vector<std::size_t> &nodes = entry.second;
    const std::size_t place = first.op->statistics.first;
    const auto is_own = [&](std::size_t i) { return copies.readers(first.inputs[i]) == nodes.size(); };
    if (is_own(place) && is_own(place + 1)) {
      add_statistics(nodes);
      continue;
    }
    for (const std::size_t n : nodes) {
      Node &node = graph.nodes[n];
      node.inputs[place] = copies.own(node.inputs[place], node.name + ".running_mean");
      node.inputs[place + 1] = copies.own(node.inputs[place + 1], node.name + ".running_var");
      add_statistics(std::span(&n, 1));
    }
  }
}

void Network::add_statistics(std::span<const std::size_t> nodes) {
  const Node &first = graph.nodes[nodes[0]];
  const std::size_t place = first.op->statistics.first;
  const Tensor mean = graph.value(first.inputs[place]).constant.clone(),
               variance = graph.value(first.inputs[place + 1]).constant.clone();
  Statistics s{first.inputs[place], first.inputs[place + 1], mean, variance, mean.clone(), variance.clone()};
  for (const std::size_t n : nodes) {
    s.uses[n] = {graph.nodes[n].attrs.get_float("momentum", 0.9),
                 std::vector<Statistics::OfChannel>(static_cast<std::size_t>(mean.count()))};
    statistics_of[n] = statistics.size();
  }
  statistics.push_back(std::move(s));
  buffers.push_back({first.name + ".running_mean", mean});
  buffers.push_back({first.name + ".running_var", variance});
}

graph::Graph Network::snapshot() const {
  Graph g = graph;
  for (const auto &[v, i] : parameter_of) g.value(v).constant = parameters[i].value.clone();
  for (const Statistics &s : statistics) {
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
  for (const Statistics &s : statistics) {
    state.push_back(s.mean);
    state.push_back(s.variance);
  }
  return state;
}

void Statistics::commit() {
  const auto measured = [](const auto &use) { return use.second.measured; };
  if (std::ranges::none_of(uses, measured)) return;
  const std::size_t earlier = batches++;
  for (std::size_t c = 0; c < static_cast<std::size_t>(mean.count()); ++c) {
    double moved_mean = mean.as<const float>()[c], moved_variance = variance.as<const float>()[c];
    for (const auto &[node, use] : uses) {
      if (!use.measured) continue;
      moved_mean = use.keep * moved_mean + (1 - use.keep) * use.batch[c].mean;
      moved_variance = use.keep * moved_variance + (1 - use.keep) * use.batch[c].variance;
    }
    const auto take_in = [&](const Tensor &next, double moved) {
      next.as<float>()[c] = mean_of_batches(next.as<const float>()[c], static_cast<float>(moved), earlier);
    };
    take_in(next_mean, moved_mean);
    take_in(next_variance, moved_variance);
  }
  forget();
}

void Statistics::forget() {
  for (auto &[node, use] : uses) use.measured = false;
}

void Network::commit() {
  for (Statistics &s : statistics) s.commit();
  if (quantization) quantization->commit();
}

void Network::follow() {
  if (quantization) quantization->follow();
}

void Network::revert() {
  for (Statistics &s : statistics) s.forget();
  if (quantization) quantization->revert();
}

void Network::update_statistics() {
  for (Statistics &s : statistics) {
    if (std::exchange(s.batches, 0) == 0) continue;
    copy_elements(s.mean, s.next_mean);
    copy_elements(s.variance, s.next_variance);
  }
}

}  // namespace qtn::train
