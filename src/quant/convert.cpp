// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "core/choose_options.hpp"
#include "graph/edges.hpp"
#include "graph/facts.hpp"
#include "graph/passes/quantize_attention.hpp"
#include "graph/tensors.hpp"
#include "quant/concat_grids.hpp"
#include "quant/prepare.hpp"
#include "quant/quantize_dynamic.hpp"
#include "quant/stored_weights.hpp"
#include "quant/weights.hpp"

namespace qtn::quant {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

/// Trained where there is a training, else of what was observed.
QuantizerPtr grid_of(const Graph &g, const Group &group, const Observer *observer, const Training *training) {
  if (group.fixed) return group.fixed;
  if (training) {
    if (QuantizerPtr trained = trained_grid(*training, g, group)) return trained;
    fail(QTN_ESTATE, "convert: training brought no data to tensor \"", g.value(group.members[0]).name, "\"");
  }
  const QuantizerPtr chosen = observed_grid(g, group, *observer);
  if (!chosen)
    fail(QTN_ESTATE, "convert: calibration brought no data to tensor \"", g.value(group.members[0]).name, "\"");
  // As files will have it, whose scales are float32.
  return std::make_shared<Quantizer>(chosen->dtype(), chosen->scheme(), chosen->axis(),
                                     std::vector{static_cast<double>(chosen->scale())}, chosen->zero_points(),
                                     Numerics::onnx);
}

class Converter {
 public:
  explicit Converter(const PreparedModel &prepared)
      : p_(prepared.placement), training_(prepared.training), g_(prepared.graph), producer_(graph::Uses(g_).producer) {
    std::vector<QuantizerPtr> grids;
    for (std::size_t i = 0; i < p_.groups.size(); ++i)
      grids.push_back(grid_of(g_, p_.groups[i], prepared.observers[i].get(), training_ ? &*training_ : nullptr));
    if (!prepared.training) share_concat_grids(g_, p_, grids);
    for (std::size_t i = 0; i < p_.groups.size(); ++i) {
      for (const ValueId v : p_.groups[i].members) g_.value(v).quantizer = grids[i];
      limits_.push_back(given_range(p_.groups[i].settings.activation, "convert"));
      if (limits_[i]) limit(p_.groups[i], *grids[i], *limits_[i]);
    }
  }

  Graph run() {
    StoredWeights stored(g_, "convert");
    for (std::size_t n = 0; n < g_.nodes.size(); ++n) {
      if (p_.nodes[n].mode != Mode::fixed) convert_apart(g_.nodes[n], p_.nodes[n], stored);
      if (!p_.nodes[n].integer) continue;
      if (p_.nodes[n].role == Role::weighted) convert_weights(g_.nodes[n], *p_.nodes[n].settings);
      if (p_.nodes[n].role == Role::moving) convert_moved_constants(g_.nodes[n]);
    }
    if (!training_) graph::quantize_attention(g_, [&](const Node &node) { return attention_mode(node); });
    graph::remove_dead(g_);
    graph::extend_grids(g_);
    return std::move(g_);
  }

 private:
  /// Grids reach over their whole type; where only some of its integers are wanted, the node that makes them stops
  /// there.
  void limit(const Group &group, const Quantizer &grid, const IntegerRange &limits) {
    for (const ValueId source : group.sources) {
      const std::int32_t maker = producer_[static_cast<std::size_t>(source)];
      if (maker < 0 || g_.nodes[static_cast<std::size_t>(maker)].outputs[0] != source) continue;
      Node &node = g_.nodes[static_cast<std::size_t>(maker)];
      ops::Clamp clamp{grid.dequantize(limits.lo), grid.dequantize(limits.hi)};
      if (node.clamp) clamp = {std::max(clamp.lo, node.clamp->lo), std::min(clamp.hi, node.clamp->hi)};
      node.clamp = clamp;
    }
  }

  graph::AttentionMode attention_mode(const Node &node) const {
    const NodePlan &plan = p_.nodes[static_cast<std::size_t>(&node - g_.nodes.data())];
    const bool quantized = plan.settings && plan.settings->mode != Mode::weights_only;
    return quantized ? plan.settings->attention : graph::AttentionMode::in_float;
  }

  /// A layer whose activations have no grids.
  void convert_apart(Node &node, const NodePlan &plan, StoredWeights &stored) {
    if (stored.quantize_table(node, *plan.settings)) return;
    if (plan.mode == Mode::dynamic)
      node = dynamic_product(g_, node, *plan.settings, std::nullopt, "convert");
    else
      stored.quantize_product(node, *plan.settings);
  }

  void convert_weights(Node &node, const Settings &settings) {
    const double sx = g_.value(node.inputs[0]).quantizer->scales()[0];
    const ValueId bias_id = input_of(node, 2);
    const Tensor bias = bias_id == graph::kNoValue ? Tensor() : g_.value(bias_id).constant;
    if (bias.has_data()) check_finite(bias, cat("convert: bias \"", g_.value(bias_id).name, "\""));
    const Tensor q = quantize_weight_of(g_, node, bias.has_data() ? &bias : nullptr, sx, settings, "convert",
                                        trained_grid(node, settings));
    node.inputs[1] = integer_constant(node.inputs[1], q);
    // Sums of blocks have no unit in which a bias could be an integer.
    if (bias.has_data() && !settings.float_bias && !q.quantizer()->per_block())
      node.inputs[2] = integer_constant(bias_id, quantize_bias(bias, sx, *q.quantizer()));
  }

  QuantizerPtr trained_grid(const Node &node, const Settings &settings) const {
    if (!training_) return nullptr;
    if (const auto range = training_->weight_ranges.find(node.name); range != training_->weight_ranges.end())
      return averaged_grid(node, g_.value(node.inputs[1]).constant, range->second, settings);
    const auto learned = training_->weights.find(node.name);
    return learned == training_->weights.end() ? nullptr : learned->second;
  }

  void convert_moved_constants(Node &node) {
    const QuantizerPtr grid = g_.value(node.outputs[0]).quantizer;
    const QuantizerPtr limited = std::make_shared<Quantizer>(
        grid->dtype(), grid->scheme(), grid->axis(), grid->scales(), grid->zero_points(), Numerics::onnx, 0,
        limits_[static_cast<std::size_t>(p_.group[static_cast<std::size_t>(node.outputs[0])])]);
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (const Tensor *t = float_constant(g_, node.inputs[i]); t && moves_operand(node, i))
        node.inputs[i] = integer_constant(node.inputs[i], quantize(*t, limited).with_quantizer(grid));
  }

  /// One copy for all nodes that read the same constant on the same grid.
  ValueId integer_constant(ValueId original, const Tensor &q) {
    const Quantizer &grid = *q.quantizer();
    std::vector<ValueId> &made = made_[{original, grid.scales()[0]}];
    for (const ValueId v : made)
      if (*g_.value(v).quantizer == grid) return v;
    const std::string name = graph::original_name(g_.value(original));
    const ValueId v = g_.add_constant(name + "_quantized", q);
    made.push_back(v);
    return v;
  }

  const Placement &p_;
  const std::optional<Training> &training_;
  Graph g_;
  const std::vector<std::int32_t> producer_;
  std::vector<std::optional<IntegerRange>> limits_;                  // by group
  std::map<std::pair<ValueId, double>, std::vector<ValueId>> made_;  // by what they are made of, and their first scale
};

}  // namespace

graph::Graph convert(const PreparedModel &prepared, const Attrs *attrs) {
  if (attrs) attrs->check({}, "convert");
  // Without groups there are no grids to train.
  if (prepared.training && prepared.training->grids.empty() && !prepared.placement.groups.empty())
    fail(QTN_ESTATE, "convert: the model has not been trained");
  if (!prepared.training && prepared.samples == 0) fail(QTN_ESTATE, "convert: the model has not been calibrated");
  return Converter(prepared).run();
}

}  // namespace qtn::quant
