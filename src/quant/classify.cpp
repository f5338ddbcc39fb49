// SPDX-License-Identifier: Apache-2.0
#include "quant/classify.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "graph/integer.hpp"
#include "graph/misfit.hpp"
#include "graph/weight_sums.hpp"
#include "quant/recurrent.hpp"

namespace qtn::quant {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

bool bias_fits(const Graph &g, ValueId bias, std::int64_t channels) {
  if (bias == kNoValue) return true;
  const Tensor *t = float_constant(g, bias);
  return t && t->rank() == 1 && t->count() == channels;
}

/// Why an elementwise operator is no table: one activation among scalar constants.
std::string table_misfit(const Graph &g, const graph::Facts &facts, const Node &node) {
  if (node.outputs.size() != 1 || !facts.is_float(node.outputs[0])) return "its result is not float32";
  std::size_t activations = 0;
  for (const ValueId v : node.inputs) {
    if (v == kNoValue) continue;
    if (is_activation(g, facts, v))
      ++activations;
    else if (const Tensor *t = float_constant(g, v); !t)
      return "an operand is not float32";
    else if (t->count() != 1)
      return graph::constant_is_long(t->count());
  }
  return activations == 1 ? std::string() : graph::combines(activations);
}

Classified moving(const graph::Facts &facts, const Node &node) {
  for (const ValueId v : node.outputs)  // indices are computed, not moved
    if (v != kNoValue && !facts.is_float(v)) return {Role::floating, "an output is not float32"};
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (node.op->moved.holds(i) && node.inputs[i] != kNoValue && !facts.is_float(node.inputs[i]))
      return {Role::floating, "an operand is not float32"};
  return {Role::moving, {}};
}

std::string mean_misfit(const Graph &g, const graph::Facts &facts, const Node &node) {
  const ValueId x = input_of(node, 0), axes = input_of(node, 1);
  if (!is_activation(g, facts, x)) return "its operand is not a float32 activation";
  const std::int64_t rank = facts.rank_of(x);
  if (rank < 0) return "the rank of its operand is not known";
  if (rank > 5) return cat("its operand has ", rank, " dimensions, and kernels take 3 to 5");
  // Three axes are more often those of a sequence, whose last one holds features.
  const bool places = rank != 3 || axes == kNoValue;
  const Tensor *given = axes != kNoValue && g.value(axes).is_constant() ? &g.value(axes).constant : nullptr;
  if (places && node.op->averages_places(static_cast<std::size_t>(rank), given)) return {};
  return "its axes are not those of all places";
}

/// Whether the first inputs, as many as its definition on integers takes, are activations.
bool reads_activations(const Graph &g, const graph::Facts &facts, const Node &node) {
  for (std::size_t i = 0; i < node.op->activations; ++i)
    if (!is_activation(g, facts, input_of(node, i))) return false;
  return true;
}

}  // namespace

const Tensor *product_weight(const Graph &g, const Node &node) {
  const Tensor *weight = graph::is_linear(node) ? float_constant(g, input_of(node, 1)) : nullptr;
  return weight && weight->count() > 0 && graph::takes_rank(node, weight->rank()) ? weight : nullptr;
}

std::string product_misfit(const Graph &g, const graph::Facts &facts, const Node &node, std::int64_t depth) {
  const Tensor *weight = float_constant(g, input_of(node, 1));
  if (!weight) return graph::kComputedWeights;
  if (weight->count() == 0) return graph::kEmptyWeights;
  if (!is_activation(g, facts, input_of(node, 0))) return "its operand is not a float32 activation";
  if (!graph::takes_rank(node, weight->rank())) return graph::weights_have_rank(weight->rank());
  const std::int64_t channels = graph::output_channels(node, weight->shape());
  const std::int64_t products = graph::weight_depth(node, weight->shape());
  if (products > depth) return graph::sums_are_deep(products, depth);
  if (const std::string addition = graph::product_addition(node); !addition.empty()) return addition;
  if (!bias_fits(g, input_of(node, 2), channels)) return cat("its bias is not a constant of ", channels, " values");
  return {};
}

bool is_mean_of_places(const Graph &g, const graph::Facts &facts, const Node &node) {
  return node.op->averages_places && mean_misfit(g, facts, node).empty();
}

bool multiplies_activations(const Graph &g, const graph::Facts &facts, const Node &node) {
  if (!graph::is_linear(node) || graph::is_convolution(node) || node.op->product->has_bias) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId v) { return is_activation(g, facts, v) && facts.rank_of(v) >= 2; });
}

Classified classify(const Graph &g, const graph::Facts &facts, const Node &node) {
  if (graph::has_quantized_run(node) && facts.is_float(node.outputs[0]) &&
      std::ranges::any_of(node.inputs, [&](ValueId v) { return is_activation(g, facts, v); }))
    return {Role::pointwise, {}};
  if (graph::is_linear(node)) {
    if (multiplies_activations(g, facts, node)) return {Role::pointwise, {}};
    std::string misfit = product_misfit(g, facts, node, graph::kWeightDepth);
    return {misfit.empty() ? Role::weighted : Role::floating, std::move(misfit)};
  }
  if (ops::moves(*node.op, node.attrs)) return moving(facts, node);
  if (node.op->averages_places) {
    std::string misfit = mean_misfit(g, facts, node);
    return {misfit.empty() ? Role::pointwise : Role::floating, std::move(misfit)};
  }
  if (node.op->run_quantized && node.op->elementwise && reads_activations(g, facts, node)) return {Role::pointwise, {}};
  if (is_recurrent(g, node))
    return {Role::floating, "its weights become integers in the modes \"dynamic\" and \"weights_only\""};
  if (!node.op->elementwise) return {Role::floating, graph::kNoIntegerForm};
  std::string misfit = table_misfit(g, facts, node);
  return {misfit.empty() ? Role::pointwise : Role::floating, std::move(misfit)};
}

}  // namespace qtn::quant
