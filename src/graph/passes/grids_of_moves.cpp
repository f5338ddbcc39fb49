// SPDX-License-Identifier: Apache-2.0
// Grids on both sides of nodes that move elements.
#include <algorithm>

#include "graph/integer.hpp"
#include "graph/passes/passes.hpp"
#include "ops/common/inserted.hpp"

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

/// The one grid of all that a node moves, where it puts nothing else between; nullptr where there is none.
QuantizerPtr grid_of_moved(const Graph &g, const Node &node) {
  if (!ops::moves(*node.op, node.attrs) || node.clamp || ops::inserts_number(*node.op, node.attrs)) return nullptr;
  QuantizerPtr grid;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue || !node.op->moved.holds(i)) continue;
    const Value &x = g.value(node.inputs[i]);
    if (x.is_constant() || !is_8bit_activation(x.quantizer) || (grid && !(*grid == *x.quantizer))) return nullptr;
    grid = x.quantizer;
  }
  return grid;
}

}  // namespace

void stay_on_grids(Graph &g) {
  const Uses uses(g);
  for (const Node &node : g.nodes) {
    const QuantizerPtr grid = grid_of_moved(g, node);
    if (!grid) continue;
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const ValueId v = node.outputs[o];
      if (v == kNoValue || g.value(v).quantizer || uses.is_output[static_cast<std::size_t>(v)]) continue;
      // Indices and masks are not moved.
      if (ops::made_dtype(*node.op, node.attrs, o, QTN_FLOAT32) == QTN_FLOAT32) g.value(v).quantizer = grid;
    }
  }
}

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
