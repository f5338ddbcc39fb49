// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "base/error.hpp"
#include "graph/control.hpp"
#include "graph/passes/passes.hpp"

namespace qtn::graph {
namespace {

/// Appends the nodes of a branch, whose outputs become those of the node.
void take_branch(Graph &g, const Node &node, const Graph &branch, std::vector<Node> &nodes) {
  std::vector<ValueId> here(branch.values.size(), kNoValue);
  const std::size_t first = node.inputs.size() - node.captured;
  for (std::size_t i = 0; i < branch.inputs.size(); ++i)
    here[static_cast<std::size_t>(branch.inputs[i])] = node.inputs[first + i];
  for (std::size_t v = 0; v < branch.values.size(); ++v) {
    if (here[v] != kNoValue) continue;
    Value value = branch.values[v];
    value.name = g.names.make(g.values, value.name);
    here[v] = g.add_value(std::move(value));
  }
  const auto moved = [&](std::vector<ValueId> ids) {
    for (ValueId &v : ids)
      if (v != kNoValue) v = here[static_cast<std::size_t>(v)];
    return ids;
  };
  for (Node inner : branch.nodes) {
    inner.inputs = moved(inner.inputs);
    inner.outputs = moved(inner.outputs);
    nodes.push_back(std::move(inner));
  }
  const std::vector<ValueId> made = moved(branch.outputs);
  for (std::size_t o = 0; o < node.outputs.size(); ++o)
    if (node.outputs[o] != kNoValue)
      nodes.push_back(
          {o == 0 ? node.name : cat(node.name, "_", o), &ops::kIdentity, {}, {made[o]}, {node.outputs[o]}, {}});
}

}  // namespace

void inline_branches(Graph &g, std::span<const std::optional<std::size_t>> which) {
  std::vector<Node> nodes, old = std::move(g.nodes);
  for (std::size_t n = 0; n < old.size(); ++n) {
    if (which[n])
      take_branch(g, old[n], *old[n].bodies.at(*which[n]), nodes);
    else
      nodes.push_back(std::move(old[n]));
  }
  g.nodes = std::move(nodes);
}

void inline_constant_branches(Graph &g) {
  for (bool found = true; found;) {  // branches have branches
    found = false;
    std::vector<std::optional<std::size_t>> which(g.nodes.size());
    for (std::size_t n = 0; n < g.nodes.size(); ++n) {
      const Node &node = g.nodes[n];
      if (node.op != &ops::kIf || !g.value(node.inputs[0]).is_constant()) continue;
      which[n] = branch_of(g.value(node.inputs[0]).constant);
      found = true;
    }
    if (!found) return;
    inline_branches(g, which);
    fold_constants(g);
  }
}

}  // namespace qtn::graph
