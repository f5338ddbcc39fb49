// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.hpp"
#include "graph/passes/passes.hpp"

namespace qtn::graph {

bool in_training(const Graph &g, const Node &node) {
  if (node.op == &ops::kBatchNormalization)
    return !g.value(node.inputs[0]).is_constant() &&
           (node.attrs.get_int("training_mode", 0) != 0 || node.outputs.size() > 1);
  if (node.op != &ops::kDropout || node.inputs.size() < 3 || node.inputs[2] == kNoValue) return false;
  const Value &mode = g.value(node.inputs[2]);
  return mode.is_constant() && item(mode.constant) != 0;
}

void require_inference(const Graph &g) {
  for (const Node &node : g.nodes)
    if (in_training(g, node))
      fail(QTN_EUNSUPPORTED, "node \"", node.name, "\": ", node.op->name,
           " is in training mode, which trainers take; for all else export the model in evaluation mode");
}

void leave_training(Graph &g) {
  const Uses uses(g);
  const auto is_read = [&](ValueId v) {
    const auto at = static_cast<std::size_t>(v);
    return v != kNoValue && (!uses.consumers[at].empty() || uses.is_output[at]);
  };
  bool changed = false;
  for (Node &node : g.nodes) {
    if (!in_training(g, node)) continue;
    changed = true;
    if (std::any_of(node.outputs.begin() + 1, node.outputs.end(), is_read))
      fail(QTN_EUNSUPPORTED, "node \"", node.name, "\": ", node.op->name,
           " is in training mode, and more than its first output is read");
    node.outputs.resize(1);
    node.attrs.erase("training_mode");
    if (node.op == &ops::kDropout) node.inputs.resize(2);
  }
  if (changed) remove_dead(g);
}

}  // namespace qtn::graph
