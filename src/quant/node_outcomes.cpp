// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "graph/facts.hpp"
#include "graph/integer.hpp"
#include "graph/passes/passes.hpp"
#include "graph/tables.hpp"
#include "quant/copies.hpp"
#include "quant/outcome.hpp"

namespace qtn::quant {
namespace {

using graph::Graph;
using graph::Node;

std::string reason(const NodePlan &plan, bool multiplies_activations, bool for_target) {
  if (plan.role == Role::floating) return plan.why;
  if (!plan.settings) return for_target ? "left in float for accuracy" : "configured to stay in float";
  if (!plan.integer)
    return multiplies_activations ? "its result has no grid by hand" : "its result is not read as integers";
  return for_target ? "activations of 16 bits for accuracy" : "no kernel for these types";
}

/// Whether a node does more than name a value, and on inputs of the model.
std::vector<bool> computed_nodes(const Graph &g) {
  std::vector<bool> constant(g.values.size()), computed;
  for (std::size_t v = 0; v < g.values.size(); ++v) constant[v] = g.values[v].is_constant();
  for (const Node &node : g.nodes) {
    const bool folds = std::all_of(node.inputs.begin(), node.inputs.end(), [&](graph::ValueId v) {
      return v == graph::kNoValue || constant[static_cast<std::size_t>(v)];
    });
    for (const graph::ValueId v : node.outputs)
      if (v != graph::kNoValue) constant[static_cast<std::size_t>(v)] = folds;
    computed.push_back(!folds && !graph::is_identity(g, node));
  }
  return computed;
}

}  // namespace

std::vector<Fusion> fusions(const Graph &before, const Graph &after) {
  std::set<std::string_view> stays;
  std::map<std::string_view, std::string_view> makers;  // nodes of `after` by the names of what they make
  for (const Node &node : after.nodes) {
    stays.insert(node.name);
    for (const graph::ValueId v : node.outputs)
      if (v != graph::kNoValue) makers[after.value(v).name] = node.name;
  }
  // From the end: what is not made any more became part of its reader, or of what that became part of.
  std::vector<Fusion> found;
  std::map<graph::ValueId, std::string_view> readers;
  const std::vector<bool> computed = computed_nodes(before);
  for (std::size_t n = before.nodes.size(); n-- > 0;) {
    const Node &node = before.nodes[n];
    const graph::ValueId y = node.outputs[0];
    const auto maker = makers.find(before.value(y).name);
    const std::string_view into = stays.contains(node.name) ? std::string_view(node.name)
                                  : maker != makers.end()   ? maker->second
                                                            : readers[y];
    for (const graph::ValueId v : node.inputs) readers[v] = into;
    if (computed[n] && !into.empty() && into != node.name)
      found.push_back({node.name, node.op->name, std::string(into)});
  }
  std::reverse(found.begin(), found.end());
  return found;
}

std::vector<FloatNode> float_nodes(const PreparedModel &p, const Graph &quantized,
                                   std::span<const FallenLayer> fallen) {
  const graph::Facts facts(p.graph);
  const graph::Tables tables{quantized};
  std::vector<FloatNode> nodes;
  for (std::size_t n = 0; n < quantized.nodes.size(); ++n) {
    const Node &node = quantized.nodes[n];
    if (is_copy(node) || graph::integer_form(quantized, node) != graph::IntegerForm::none || tables.has(n)) continue;
    if (!is_activation(p.graph, facts, p.graph.nodes[n].outputs[0])) continue;
    const bool for_target =
        std::any_of(fallen.begin(), fallen.end(), [&](const FallenLayer &layer) { return layer.node == node.name; });
    nodes.push_back(
        {node.name, node.op->name,
         reason(p.placement.nodes[n], multiplies_activations(p.graph, facts, p.graph.nodes[n]), for_target)});
  }
  return nodes;
}

}  // namespace qtn::quant
