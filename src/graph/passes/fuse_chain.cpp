// SPDX-License-Identifier: Apache-2.0
// Fusion by names, for programs that know what they want fused.
#include <algorithm>

#include "base/error.hpp"
#include "graph/passes/passes.hpp"
#include "graph/unique_names.hpp"

namespace qtn::graph {
namespace {

const Node *find_node(const Graph &g, std::string_view name) {
  const auto found = std::find_if(g.nodes.begin(), g.nodes.end(), [&](const Node &node) { return node.name == name; });
  return found == g.nodes.end() ? nullptr : &*found;
}

std::string list_of(const Graph &g, std::span<const std::string_view> names) {
  std::string list;
  for (const std::string_view name : names)
    list += cat(list.empty() ? "" : ", ", "\"", name, "\" (", find_node(g, name)->op->name, ")");
  return list;
}

/// Each of the nodes must be there, and alone read what the one before it makes.
void check_chain(const Graph &g, std::span<const std::string_view> names) {
  if (names.size() < 2) fail(QTN_EINVAL, "fuse: a chain has at least 2 nodes, not ", names.size());
  for (const std::string_view name : names)
    if (!find_node(g, name)) fail(QTN_EINVAL, "fuse: there is no node \"", name, "\"");
  const Uses uses(g);
  for (std::size_t i = 1; i < names.size(); ++i) {
    const Node &before = *find_node(g, names[i - 1]), &node = *find_node(g, names[i]);
    if (std::find(before.outputs.begin(), before.outputs.end(), node.inputs[0]) == before.outputs.end())
      fail(QTN_EINVAL, "fuse: \"", node.name, "\" does not read \"", before.name, "\"");
    if (!uses.single_use(node.inputs[0]))
      fail(QTN_EINVAL, "fuse: not only \"", node.name, "\" reads \"", before.name, "\"");
  }
}

/// The first two nodes of a chain, where the second is a normalization.
std::shared_ptr<Unfused> before_folding(const Graph &g, std::span<const std::string_view> names) {
  const Node *product = find_node(g, names[0]), *norm = find_node(g, names[1]);
  if (!product || !norm || norm->op != &ops::kBatchNormalization || product->inputs.empty()) return nullptr;
  auto unfused = std::make_shared<Unfused>(Unfused{*product, *norm, {}, g.value(norm->inputs[0]), {}, {}});
  for (const Node *node : {product, norm})
    for (const ValueId v : std::span(node->inputs).subspan(1))
      unfused->constants.push_back(v == kNoValue ? Value() : g.value(v));
  return unfused;
}

/// Whether the node holds what folding made of it.
bool is_as_folded(const Graph &g, const Node &node) {
  const auto holds = [&](std::size_t i, const Tensor &t) {
    return node.inputs.size() > i && node.inputs[i] != kNoValue && g.value(node.inputs[i]).is_constant() &&
           g.value(node.inputs[i]).constant.data() == t.data();
  };
  return holds(1, node.unfused->weight) && holds(2, node.unfused->bias);
}

/// Fuses a chain in evaluation mode.
void fuse(Graph &g, std::span<const std::string_view> names) {
  const std::string asked = list_of(g, names);
  const auto named = [&](const Node &node) { return std::find(names.begin(), names.end(), node.name) != names.end(); };
  fold_constants(g);
  std::shared_ptr<Unfused> unfused = before_folding(g, names);
  fold_batch_norms(g, named);
  fuse_clamps(g, named);
  for (const std::string_view name : names.subspan(1))
    if (find_node(g, name))
      fail(QTN_EINVAL, "fuse: ", asked,
           " do not become one; what does: Conv or Gemm, then BatchNormalization, Relu or Clip, or both");
  if (!unfused) return;
  for (Node &node : g.nodes) {
    if (node.name != names[0]) continue;
    unfused->weight = g.value(node.inputs[1]).constant;
    unfused->bias = g.value(node.inputs[2]).constant;
    node.unfused = std::move(unfused);
    return;
  }
}

}  // namespace

void fuse_chain(Graph &g, std::span<const std::string_view> names) {
  check_chain(g, names);
  const bool trains = std::any_of(names.begin(), names.end(),
                                  [&](std::string_view name) { return in_training(g, *find_node(g, name)); });
  if (!trains) return fuse(g, names);
  Graph trial = g;
  leave_training(trial);
  fuse(trial, names);
}

void restore_norms(Graph &g) {
  UniqueNames names;
  for (const Value &value : g.values) names.take(value.name);
  const auto add = [&](Value value) {
    value.name = names.make(value.name);
    return g.add_value(std::move(value));
  };
  std::vector<Node> nodes;
  std::swap(nodes, g.nodes);
  bool again = false;
  for (Node &node : nodes) {
    if (!node.unfused || !is_as_folded(g, node)) {
      g.nodes.push_back(std::move(node));
      continue;
    }
    const std::shared_ptr<const Unfused> unfused = std::move(node.unfused);
    Node product = unfused->product, norm = unfused->norm;
    again = again || product.unfused;  // one was folded after another
    product.inputs[0] = node.inputs[0];
    product.outputs = {add(unfused->between)};
    norm.inputs[0] = product.outputs[0];
    norm.outputs = node.outputs;
    norm.clamp = node.clamp;
    auto constant = unfused->constants.begin();
    for (Node *part : {&product, &norm}) {
      for (ValueId &v : std::span(part->inputs).subspan(1)) {
        if (v != kNoValue) v = add(*constant);
        ++constant;
      }
      g.nodes.push_back(std::move(*part));
    }
  }
  remove_dead(g);
  if (again) restore_norms(g);
}

}  // namespace qtn::graph
