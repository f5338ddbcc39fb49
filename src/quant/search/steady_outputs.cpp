// SPDX-License-Identifier: Apache-2.0
#include "quant/search/steady_outputs.hpp"

#include <algorithm>
#include <memory>

#include "graph/facts.hpp"

namespace qtn::quant {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::ValueId;

bool chooses(const std::shared_ptr<const Graph> &body);

/// By value, whether integers that are computed from floats decide about it.
std::vector<bool> chosen_values(const Graph &g, const graph::Facts &facts) {
  std::vector<bool> chosen(g.values.size(), false);
  std::vector<bool> from_inputs(g.values.size(), false);  // not from their shapes alone
  std::vector<bool> inexact(g.values.size(), false);      // such floats, and booleans that compare them
  const auto set = [](std::vector<bool> &values, ValueId v) { values[static_cast<std::size_t>(v)] = true; };
  const auto reads = [](const graph::Node &node, const std::vector<bool> &values) {
    return std::ranges::any_of(node.inputs,
                               [&](ValueId v) { return v != kNoValue && values[static_cast<std::size_t>(v)]; });
  };
  for (const ValueId v : g.inputs) {
    set(from_inputs, v);
    if (is_floating(facts.dtype[static_cast<std::size_t>(v)])) set(inexact, v);
  }
  for (const graph::Node &node : g.nodes) {
    const bool sees_inputs = !node.op->reads_shapes && reads(node, from_inputs);
    const bool sees_inexact = sees_inputs && reads(node, inexact);
    const bool follows = reads(node, chosen) || std::ranges::any_of(node.bodies, chooses);
    for (const ValueId v : node.outputs) {
      if (v == kNoValue) continue;
      const qdtype dtype = facts.dtype[static_cast<std::size_t>(v)];
      const bool real = is_floating(dtype), truth = dtype == QTN_BOOL;
      if (follows || (sees_inexact && !real && !truth)) set(chosen, v);
      if (real ? sees_inputs : truth && sees_inexact) set(inexact, v);
      if (sees_inputs) set(from_inputs, v);
    }
  }
  return chosen;
}

bool chooses(const std::shared_ptr<const Graph> &body) {
  const std::vector<bool> chosen = chosen_values(*body, graph::Facts(*body));
  return std::ranges::find(chosen, true) != chosen.end();
}

}  // namespace

std::vector<bool> steady_outputs(const Graph &g) {
  const graph::Facts facts(g);
  const std::vector<bool> chosen = chosen_values(g, facts);
  std::vector<bool> steady;
  bool any = false;
  for (const ValueId v : g.outputs) {
    steady.push_back(!chosen[static_cast<std::size_t>(v)]);
    any = any || (steady.back() && is_floating(facts.dtype[static_cast<std::size_t>(v)]));
  }
  if (!any) steady.assign(steady.size(), true);
  return steady;
}

}  // namespace qtn::quant
