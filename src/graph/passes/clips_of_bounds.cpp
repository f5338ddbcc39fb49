// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "graph/facts.hpp"
#include "graph/passes/passes.hpp"

namespace qtn::graph {
namespace {

/// The number that a float constant is; nullopt of several, of NaN, and of what is not a constant.
std::optional<float> number_of(const Value &value) {
  if (!value.is_constant() || value.constant.count() != 1) return std::nullopt;
  const Tensor real = value.constant.quantized() ? dequantize(value.constant) : value.constant;
  if (real.dtype() != QTN_FLOAT32) return std::nullopt;
  const float number = *real.as<const float>();
  return std::isnan(number) ? std::nullopt : std::optional(number);
}

/// By operand `at` as the bound.
bool make_clip(Graph &g, const Facts &facts, Node &node, std::size_t at) {
  const ValueId x = node.inputs[1 - at];
  const Value given = g.value(node.inputs[at]);
  const std::optional<float> bound = number_of(given);
  if (!bound || g.value(x).is_constant()) return false;
  const auto rank = static_cast<std::int64_t>(given.constant.rank());
  if (rank > 0 && facts.rank_of(x) < rank) return false;  // the result has the shape of x otherwise
  // The second of two zeros counts, and with Clip the lower bound or else the element.
  if (*bound == 0 && (node.op == &ops::kMax) == (at == 0)) return false;
  const bool is_scalar = given.constant.rank() == 0 && !given.constant.quantized();
  const ValueId v = is_scalar ? node.inputs[at] : g.add_constant(given.name + "_bound", Tensor::scalar(*bound));
  node.inputs = node.op == &ops::kMax ? std::vector{x, v} : std::vector{x, kNoValue, v};
  node.op = &ops::kClip;
  return true;
}

}  // namespace

void make_clips_of_bounds(Graph &g) {
  const auto is_bound = [](const Node &node) {
    return (node.op == &ops::kMax || node.op == &ops::kMin) && node.inputs.size() == 2;
  };
  if (std::ranges::none_of(g.nodes, is_bound)) return;
  const Facts facts(g);
  for (Node &node : g.nodes)
    if (is_bound(node) && !make_clip(g, facts, node, 0)) make_clip(g, facts, node, 1);
}

}  // namespace qtn::graph
