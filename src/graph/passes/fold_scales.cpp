// SPDX-License-Identifier: Apache-2.0
// Layers whose results are multiplied by constants, or to which constants are added, as PaddlePaddle's "learnable affine
// blocks" and normalizations that an exporter has spelled out are.
#include <algorithm>
#include <cmath>
#include <optional>

#include "graph/facts.hpp"
#include "graph/integer.hpp"
#include "graph/passes/affine.hpp"
#include "graph/passes/passes.hpp"
#include "graph/tensors.hpp"

namespace qtn::graph {
namespace {

/// The values of a constant by channel of a result of so many dimensions, of which it makes no more and which it does
/// not stretch.
std::optional<std::vector<float>> by_channel(const Tensor &t, std::size_t rank, std::size_t channels) {
  if (t.rank() > rank) return std::nullopt;
  for (std::size_t axis = 0; axis < t.rank(); ++axis) {
    const bool of_channels = axis + rank - t.rank() == 1 && t.dim(axis) == static_cast<std::int64_t>(channels);
    if (t.dim(axis) != 1 && !of_channels) return std::nullopt;
  }
  std::vector<float> values = float_values(t, "factors");
  if (values.size() == 1) values.resize(channels, values[0]);
  if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) return std::nullopt;
  return values;
}

/// What the node makes of its operand number `x`, where the other is a constant.
std::optional<Affine> affine_of_arithmetic(const Graph &g, const Node &node, std::size_t x, std::size_t rank,
                                           std::size_t channels) {
  const Tensor *constant = float_constant(g, node.inputs[1 - x]);
  if (!constant) return std::nullopt;
  const auto values = by_channel(*constant, rank, channels);
  if (!values) return std::nullopt;
  const std::vector<float> ones(channels, 1.0f), zeros(channels, 0.0f);
  const auto each = [&](auto f) {
    std::vector<float> made = *values;
    std::ranges::transform(made, made.begin(), f);
    return made;
  };
  if (node.op == &ops::kMul) return Affine{*values, zeros};
  if (node.op == &ops::kAdd) return Affine{ones, *values};
  if (node.op == &ops::kSub)
    return x == 0 ? Affine{ones, each([](float v) { return -v; })}
                  : Affine{std::vector<float>(channels, -1.0f), *values};
  const bool has_zero = std::ranges::find(*values, 0.0f) != values->end();
  if (node.op == &ops::kDiv && x == 0 && !has_zero) return Affine{each([](float v) { return 1 / v; }), zeros};
  return std::nullopt;
}

bool is_arithmetic(const Node &node) {
  return node.op == &ops::kMul || node.op == &ops::kAdd || node.op == &ops::kSub || node.op == &ops::kDiv;
}

}  // namespace

void fold_scales(Graph &g, const NodeFilter &only) {
  Uses uses(g);
  std::vector<bool> gone(g.nodes.size(), false);
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    Node &node = g.nodes[n];
    if (!is_arithmetic(node) || !only(node)) continue;
    for (const std::size_t i : {0, 1}) {
      const ValueId x = node.inputs[i];
      const std::int32_t maker = uses.producer[static_cast<std::size_t>(x)];
      if (maker < 0 || !uses.single_use(x) || g.value(x).quantizer) continue;
      Node &linear = g.nodes[static_cast<std::size_t>(maker)];
      const Tensor *weight = is_linear(linear) && only(linear) ? float_constant(g, input_of(linear, 1)) : nullptr;
      if (!weight || weight->rank() < 2) continue;
      const std::int64_t channels = output_channels(linear, weight->shape());
      const auto affine = affine_of_arithmetic(g, node, i, weight->rank(),
                                               static_cast<std::size_t>(std::max<std::int64_t>(channels, 0)));
      if (!affine || !fold_into(g, linear, *affine)) continue;
      linear.outputs[0] = node.outputs[0];
      linear.clamp = node.clamp;
      uses.producer[static_cast<std::size_t>(node.outputs[0])] = maker;
      gone[n] = true;
      break;
    }
  }
  std::size_t n = 0;
  std::erase_if(g.nodes, [&](const Node &) { return gone[n++]; });
  sort_topologically(g);
  remove_dead(g);
}

void fold_scales_before_norms(Graph &g) {
  const auto is_norm = [](const Node &node) { return node.op == &ops::kBatchNormalization; };
  if (std::ranges::none_of(g.nodes, is_norm)) return;
  const Uses uses(g);
  std::vector<bool> leads(g.values.size(), false);  // to a normalization, and nowhere else
  for (auto node = g.nodes.rbegin(); node != g.nodes.rend(); ++node) {
    const bool passes_on =
        is_norm(*node) || (is_arithmetic(*node) && leads[static_cast<std::size_t>(node->outputs[0])]);
    for (const std::size_t i : {0, 1})
      if (const ValueId v = passes_on ? input_of(*node, i) : kNoValue; v != kNoValue)
        leads[static_cast<std::size_t>(v)] = uses.single_use(v);
  }
  fold_scales(g, [&](const Node &node) { return is_linear(node) || leads[static_cast<std::size_t>(node.outputs[0])]; });
}

void fold_scales(Graph &g) {
  fold_scales(g, [](const Node &) { return true; });
}

}  // namespace qtn::graph
