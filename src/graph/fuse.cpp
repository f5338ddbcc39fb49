// SPDX-License-Identifier: Apache-2.0
// Passes that let one node do the work of two.
#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "graph/passes.hpp"

namespace qtn::graph {
namespace {

/// The bounds of a Relu or a Clip with constant scalar bounds.
std::optional<ops::Clamp> clamp_of(const Graph &g, const Node &node) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::string_view name = node.op->name;
  if (name == "Relu") return ops::Clamp{0.0f, kInfinity};
  if (name != "Clip") return std::nullopt;
  ops::Clamp clamp{-kInfinity, kInfinity};
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    const Tensor &bound = g.value(node.inputs[i]).constant;
    if (!bound.has_data() || bound.dtype() != QTN_FLOAT32 || bound.count() != 1) return std::nullopt;
    (i == 1 ? clamp.lo : clamp.hi) = *bound.as<const float>();
  }
  if (!(clamp.lo <= clamp.hi)) return std::nullopt;
  return clamp;
}

/// Only operators with an integer meaning of their own have an epilogue to put a clamp in.
bool takes_clamp(const Node &node) { return node.op->run_quantized != nullptr && node.outputs.size() == 1; }

}  // namespace

void fuse_clamps(Graph &g) {
  const Uses uses(g);
  std::vector<bool> gone(g.nodes.size(), false);
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    const Node &node = g.nodes[n];
    const std::optional<ops::Clamp> clamp = clamp_of(g, node);
    if (!clamp || node.clamp) continue;
    const ValueId x = node.inputs[0];
    const std::int32_t maker = uses.producer[static_cast<std::size_t>(x)];
    if (maker < 0 || !uses.single_use(x) || g.value(x).quantizer) continue;
    Node &before = g.nodes[static_cast<std::size_t>(maker)];
    if (gone[static_cast<std::size_t>(maker)] || !takes_clamp(before) || before.clamp || before.outputs[0] != x)
      continue;
    before.clamp = clamp;
    before.outputs[0] = node.outputs[0];
    gone[n] = true;
  }
  std::size_t n = 0;
  std::erase_if(g.nodes, [&](const Node &) { return gone[n++]; });
  sort_topologically(g);
  remove_dead(g);
}

void optimize(Graph &g) {
  fold_constants(g);
  remove_identities(g);
  fold_batch_norms(g);
  fuse_clamps(g);
}

}  // namespace qtn::graph
