// SPDX-License-Identifier: Apache-2.0
// Fusion by names, for those who know what they want to see fused.
#include <algorithm>

#include "base/error.hpp"
#include "graph/passes.hpp"

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

}  // namespace

void fuse_chain(Graph &g, std::span<const std::string_view> names) {
  check_chain(g, names);
  const std::string asked = list_of(g, names);
  const auto named = [&](const Node &node) { return std::find(names.begin(), names.end(), node.name) != names.end(); };
  fold_constants(g);
  fold_batch_norms(g, named);
  fuse_clamps(g, named);
  for (const std::string_view name : names.subspan(1))
    if (find_node(g, name))
      fail(QTN_EINVAL, "fuse: ", asked,
           " do not become one; what does: Conv or Gemm, then BatchNormalization, Relu or Clip, or both");
}

}  // namespace qtn::graph
