// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string_view>
#include <unordered_map>

#include "graph/facts.hpp"
#include "graph/integer.hpp"
#include "quant/mask.hpp"
#include "quant/outcome.hpp"

namespace qtn::quant {

namespace {

using Grids = std::unordered_map<std::string_view, QuantizerPtr>;  // by name

TensorOutcome outcome_of_group(const PreparedModel &p, std::size_t g, const Grids &grids) {
  const Group &group = p.placement.groups[g];
  TensorOutcome outcome;
  for (const graph::ValueId v : group.members) outcome.members.push_back(p.graph.value(v).name);
  outcome.name = outcome.members[0];
  outcome.observer = group.fixed ? "fixed" : p.observers[g]->kind();
  if (const auto grid = grids.find(outcome.name); grid != grids.end()) outcome.grid = grid->second;
  if (p.distributions.empty()) return outcome;
  outcome.seen = p.distributions[g];
  for (const graph::ValueId v : group.constants)
    if (const Tensor &constant = p.graph.value(v).constant; group.fixed || !is_mask(constant, *p.observers[g]))
      outcome.seen->add(constant);
  return outcome;
}

}  // namespace

std::vector<TensorOutcome> tensor_outcomes(const PreparedModel &p, const graph::Graph &quantized) {
  Grids grids;
  for (const graph::Value &value : quantized.values) grids[value.name] = value.quantizer;
  std::vector<TensorOutcome> outcomes;
  for (std::size_t g = 0; g < p.placement.groups.size(); ++g) outcomes.push_back(outcome_of_group(p, g, grids));
  std::set<graph::ValueId> known;
  for (std::size_t n = 0; n < quantized.nodes.size(); ++n) {
    const NodePlan &plan = p.placement.nodes[n];
    const graph::Node &node = quantized.nodes[n];
    const bool weights = (plan.role == Role::weighted && plan.integer) || plan.mode == Mode::weights_only;
    if (!weights || !graph::is_linear(node) || !known.insert(node.inputs[1]).second) continue;
    const Tensor *real = float_constant(p.graph, p.graph.nodes[n].inputs[1]);
    TensorOutcome outcome{p.graph.value(p.graph.nodes[n].inputs[1]).name, {}, node.name, plan.settings->weight_observer,
                          quantized.value(node.inputs[1]).quantizer,      {}};
    if (!p.distributions.empty()) outcome.seen.emplace().add(*real);
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

}  // namespace qtn::quant
