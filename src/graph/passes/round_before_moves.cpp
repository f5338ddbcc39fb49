// SPDX-License-Identifier: Apache-2.0
// Rounding before elements are moved instead of afterwards.
#include <algorithm>

#include "graph/integer.hpp"
#include "graph/passes/passes.hpp"

namespace qtn::graph {
namespace {

/// The one grid of all results of a node that moves elements or chooses among them; nullptr where there is none.
QuantizerPtr grid_of_results(const Graph &g, const Node &node) {
  if (!ops::moves(*node.op, node.attrs) || node.clamp) return nullptr;
  QuantizerPtr grid;
  for (const ValueId v : node.outputs) {
    const QuantizerPtr q = v == kNoValue ? nullptr : g.value(v).quantizer;
    if (!is_8bit_activation(q) || (grid && !(*grid == *q))) return nullptr;
    grid = q;
  }
  return grid;
}

}  // namespace

void round_before_moves(Graph &g) {
  const Uses uses(g);
  for (std::size_t n = g.nodes.size(); n-- > 0;) {
    const QuantizerPtr grid = grid_of_results(g, g.nodes[n]);
    if (!grid) continue;
    for (std::size_t i = 0; i < g.nodes[n].inputs.size(); ++i) {
      const ValueId v = g.nodes[n].inputs[i];
      if (v == kNoValue || !g.nodes[n].op->moved.holds(i)) continue;
      Value &x = g.value(v);
      // No other node may see it: a grid that others read through as well would round what they get.
      if (!x.quantizer && !x.is_constant() && uses.single_use(v)) x.quantizer = grid;
    }
  }
}

}  // namespace qtn::graph
