// SPDX-License-Identifier: Apache-2.0
#include "graph/integer.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "graph/edges.hpp"
#include "graph/misfit.hpp"
#include "graph/weight_sums.hpp"
#include "ops/common/dynamic_quantizer.hpp"
#include "ops/common/recurrent_op.hpp"
#include "ops/common/requantization.hpp"

namespace qtn::graph {
namespace {

const Value *operand(const Graph &g, const Node &node, std::size_t i) {
  return i < node.inputs.size() && node.inputs[i] != kNoValue ? &g.value(node.inputs[i]) : nullptr;
}

constexpr const char *kFloatWeights = "its weights are floats", *kZeroPoint = "its weights have a zero point",
                     *kComputedBias = "its bias is not a constant", *kClamped = "its result is clamped",
                     *kOperandsOffGrid = "its operands are not on grids of 8 bits";

bool is_activation_8bit(const Value *v) { return v && !v->is_constant() && is_8bit_activation(v->quantizer); }

bool is_around_zero(const Quantizer &q) {
  return std::ranges::all_of(q.zero_points(), [](std::int64_t z) { return z == 0; });
}

/// Why weights are not constant int8, int4 or int2 on a symmetric grid, whole or by output channel.
std::string weight_misfit(const Node &node, const Value *w) {
  if (!w || !w->is_constant()) return kComputedWeights;
  if (!w->quantizer) return kFloatWeights;
  const Quantizer &q = *w->quantizer;
  if (plain_dtype(q.dtype()) != QTN_INT8) return cat("its weights are ", dtype_name(q.dtype()));
  if (q.per_block()) return "its weights have a scale for each block";
  if (!is_around_zero(q)) return kZeroPoint;
  if (!takes_rank(node, w->constant.rank())) return weights_have_rank(w->constant.rank());
  const auto rank = static_cast<std::int64_t>(w->constant.rank());
  const std::int64_t axis = q.axis() < 0 ? q.axis() + rank : q.axis();
  const bool by_output = !q.per_channel() || axis == static_cast<std::int64_t>(output_channel_axis(node));
  return by_output ? std::string() : cat("its weights have scales along axis ", axis, ", not by output channel");
}

std::string sums_are_large(std::int64_t depth) {
  return cat("a sum of ", depth, " products by its weights may be beyond int32");
}

/// Whether int32 holds the sums of products by constant weights and the bias, whatever activations there are.
bool sums_fit(const Graph &g, const Node &node, std::int64_t channels) {
  const Value &w = *operand(g, node, 1), *bias = operand(g, node, 2);
  const std::vector<double> sums = weight_magnitudes(to_plain(w.constant), output_channel_axis(node));
  const std::vector<std::int32_t> added =
      ops::integer_bias(bias ? &bias->constant : nullptr, *operand(g, node, 0)->quantizer, *w.quantizer,
                        static_cast<std::size_t>(channels));
  for (std::size_t c = 0; c < added.size(); ++c)  // sums are those of a group
    if (kMostActivation * sums[c % sums.size()] + std::fabs(static_cast<double>(added[c])) > kMostSum) return false;
  return true;
}

/// Why a linear node does not run on integers.
std::string linear_misfit(const Graph &g, const Node &node) {
  if (!is_activation_8bit(operand(g, node, 0))) return "its operand is not on a grid of 8 bits";
  if (std::string misfit = weight_misfit(node, operand(g, node, 1)); !misfit.empty()) return misfit;
  const Value *bias = operand(g, node, 2);
  if (bias && !bias->is_constant()) return kComputedBias;
  const Shape &weight = operand(g, node, 1)->constant.shape();
  const std::int64_t channels = output_channels(node, weight), depth = weight_depth(node, weight);
  if (depth > kWeightDepth) return sums_are_deep(depth, kWeightDepth);
  if (std::string addition = product_addition(node); !addition.empty()) return addition;
  if (bias && !is_of_channels(bias->constant, channels))
    return cat("its bias is ", to_string(bias->constant.shape()), " for ", channels, " output channels");
  if (bias && !bias->constant.quantized() && bias->constant.dtype() != QTN_FLOAT32)
    return cat("its bias is ", dtype_name(bias->constant.dtype()), ", not float32");
  if (bias && ops::is_bias_beyond_int32(bias->constant, *operand(g, node, 0)->quantizer,
                                        *operand(g, node, 1)->quantizer, static_cast<std::size_t>(channels)))
    return "a bias is beyond int32 in units of its scales";
  if (depth > kSureDepth && !sums_fit(g, node, channels)) return sums_are_large(depth);
  const Value &y = g.value(node.outputs[0]);
  return !y.quantizer || is_8bit_activation(y.quantizer) ? std::string()
                                                         : "its result is on a grid that is not of 8 bits";
}

/// Absent, or constant: one number, or one for each of the columns.
bool of_columns(const Value *v, std::int64_t columns) {
  if (!v) return true;
  const Tensor &t = v->constant;
  return v->is_constant() && !v->quantizer && (t.count() == 1 || is_of_channels(t, columns));
}

bool are_scales(const Tensor &t) {
  if (t.dtype() != QTN_FLOAT32) return false;
  const std::vector<float> values = float_values(t, "scales");
  return std::all_of(values.begin(), values.end(), [](float s) { return s > 0 && std::isfinite(s); });
}

bool convolves_dynamically(const Node &node) { return node.op == &ops::kDynamicQuantizeConv; }

/// Whether bytes less these zero points are the int8 that kernels read: uint8 128 further down.
bool has_zero_points(const Value &w, const Value *zeros) {
  const std::int64_t center = w.constant.dtype() == QTN_UINT8 ? 128 : 0;
  if (!zeros) return center != 0;
  return std::ranges::any_of(int_values(zeros->constant, "zero points"), [&](std::int64_t z) { return z != center; });
}

/// Why DynamicQuantizeMatMul or DynamicQuantizeConv is not a product by constant integers with constant scales.
std::string dynamic_misfit(const Graph &g, const Node &node) {
  const bool convolves = convolves_dynamically(node);
  const std::size_t channel_axis = output_channel_axis(node);
  const Value &w = *operand(g, node, 1);
  if (!w.is_constant()) return kComputedWeights;
  if (w.quantizer) return "its weights are on a grid beside their scales";
  const std::size_t rank = w.constant.rank();
  if (convolves ? rank < 3 || rank > 5 : rank != 2) return weights_have_rank(rank);
  if (w.constant.count() == 0) return kEmptyWeights;
  const std::int64_t channels = w.constant.dim(channel_axis), depth = w.constant.count() / channels;
  const bool are_centered = w.constant.dtype() == QTN_INT8 && !operand(g, node, 3);
  const std::int64_t most = are_centered ? kWeightDepth : kDynamicDepth;
  if (depth > most) return sums_are_deep(depth, most);
  if (depth > kSureDepth && kMostActivation * std::ranges::max(weight_magnitudes(w.constant, channel_axis)) > kMostSum)
    return sums_are_large(depth);
  constexpr const char *kOfChannels[] = {"scales", "zero points", "biases"};
  for (const std::size_t i : {2, 3, 4})
    if (!of_columns(operand(g, node, i), channels))
      return cat("its ", kOfChannels[i - 2], " are not constants: one, or one for each of ", channels,
                 convolves ? " channels" : " columns");
  if (ops::own_grid(node.op->name, node.attrs).granularity == ops::Granularity::row) {
    if (w.constant.dtype() != QTN_INT8)
      return cat("its weights are ", dtype_name(w.constant.dtype()), ", and rows with grids of their own take int8");
    if (operand(g, node, 3)) return cat(kZeroPoint, ", and rows with grids of their own take none");
  }
  const bool depthwise = convolves && w.constant.dim(1) == 1 && node.attrs.get_int("group", 1) > 1;
  if (depthwise && has_zero_points(w, operand(g, node, 3)))
    return cat(kZeroPoint, ", and convolutions of single channels take none");
  return are_scales(operand(g, node, 2)->constant) ? std::string() : "its scales are not positive float32 numbers";
}

/// Why an elementwise operator is no table: one activation among scalar constants.
std::string table_misfit(const Graph &g, const Node &node) {
  std::size_t activations = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Value *v = operand(g, node, i);
    if (!v) continue;
    if (is_activation_8bit(v))
      ++activations;
    else if (!v->is_constant())
      return "its operand is not on a grid of 8 bits";
    else if (v->constant.count() != 1)
      return constant_is_long(v->constant.count());
  }
  return activations == 1 ? std::string() : combines(activations);
}

std::string move_misfit(const Graph &g, const Node &node) {
  if (node.clamp) return kClamped;
  const QuantizerPtr &q = g.value(node.outputs[0]).quantizer;
  const auto same = [&](const Value &v) { return v.quantizer && *v.quantizer == *q; };
  for (const ValueId id : node.outputs)
    if (id != kNoValue && !same(g.value(id))) return "its results are not all on one grid";
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Value *v = operand(g, node, i);
    if (!v) continue;
    if (node.op->moved.holds(i) && !same(*v)) return "what it moves is not on the grid of its result";
    if (!node.op->moved.holds(i) && !v->is_constant() && v->quantizer)
      return "an operand that it does not move is on a grid";
  }
  return {};
}

/// Parts on grids of their own are looked up in a table that leads to the result's.
std::string join_misfit(const Graph &g, const Node &node) {
  if (node.clamp) return kClamped;
  const bool on_grids =
      std::ranges::all_of(node.inputs, [&](ValueId v) { return is_8bit_activation(g.value(v).quantizer); });
  return on_grids ? std::string() : kOperandsOffGrid;
}

std::string recurrent_misfit(const Graph &g, const Node &node) {
  for (const std::size_t i : {1, 2}) {
    const Value *v = operand(g, node, i);
    if (!v || !v->is_constant()) return kComputedWeights;
    if (std::string misfit = recurrent_weight_misfit(v->constant); !misfit.empty()) return misfit;
  }
  const Value *bias = operand(g, node, 3), *peepholes = operand(g, node, 7);
  if (bias && !bias->is_constant()) return kComputedBias;
  return peepholes && !peepholes->is_constant() ? "its peepholes are not a constant" : std::string();
}

/// Why the operator's definition on quantized tensors does not apply.
std::string definition_misfit(const Graph &g, const Node &node) {
  if (has_quantized_run(node)) {
    const auto on_grid = [&](ValueId v) { return v != kNoValue && is_activation_8bit(&g.value(v)); };
    return std::ranges::any_of(node.inputs, on_grid) ? std::string() : "none of its operands is on a grid of 8 bits";
  }
  for (std::size_t i = 0; i < node.op->activations; ++i)
    if (const Value *v = operand(g, node, i); !v || !is_8bit_activation(v->quantizer)) return kOperandsOffGrid;
  return {};
}

/// Registered operators bring a definition along; ours for sums of elements along an axis has no kernel.
bool has_arithmetic_kernel(const Node &node) {
  return !has_quantized_run(node) && (node.op->elementwise || node.op->averages_places);
}

/// The form of a node, or why it has none.
struct Fit {
  IntegerForm form = IntegerForm::none;
  std::string misfit = {};
};

Fit fit_unless(std::string misfit, IntegerForm form) {
  return {misfit.empty() ? form : IntegerForm::none, std::move(misfit)};
}

/// Where the operator may have several forms, the misfit is that of the last.
Fit fit_to_grids(const Graph &g, const Node &node) {
  const bool moves = ops::moves(*node.op, node.attrs), defined = node.op->run_quantized || has_quantized_run(node);
  if (!moves && !node.op->joins && !node.op->elementwise && !defined) return {IntegerForm::none, kNoIntegerForm};
  if (node.outputs.empty() || node.outputs[0] == kNoValue || !is_8bit_activation(g.value(node.outputs[0]).quantizer))
    return {IntegerForm::none, "its result is not on a grid of 8 bits"};
  const IntegerForm by_definition = has_arithmetic_kernel(node) ? IntegerForm::arithmetic : IntegerForm::definition;
  const struct {
    bool applies;
    std::string (*misfit)(const Graph &, const Node &);
    IntegerForm form;
  } rows[] = {{moves, move_misfit, IntegerForm::move},
              {node.op->joins, join_misfit, IntegerForm::move},
              {node.op->elementwise, table_misfit, IntegerForm::table},
              {defined, definition_misfit, by_definition}};
  Fit fit;
  for (const auto &row : rows)
    if (row.applies && fit.form == IntegerForm::none) fit = fit_unless(row.misfit(g, node), row.form);
  return fit;
}

Fit fit_of(const Graph &g, const Node &node) {
  if (is_linear(node)) return fit_unless(linear_misfit(g, node), IntegerForm::linear);
  if (is_dynamic_product(node)) return fit_unless(dynamic_misfit(g, node), IntegerForm::dynamic);
  if (passes_integers(g, node)) return {IntegerForm::edge};
  if (ops::is_recurrent(*node.op)) return fit_unless(recurrent_misfit(g, node), IntegerForm::recurrent);
  return fit_to_grids(g, node);
}

}  // namespace

bool is_8bit_activation(const QuantizerPtr &q) {
  return q && q->per_tensor() && (q->dtype() == QTN_UINT8 || q->dtype() == QTN_INT8);
}

bool takes_rank(const Node &node, std::size_t rank) { return is_convolution(node) ? rank >= 3 : rank == 2; }

bool is_convolution(const Node &node) { return node.op->product && node.op->product->convolution; }

bool is_linear(const Node &node) { return node.op->product; }

bool is_dynamic_product(const Node &node) {
  return node.op == &ops::kDynamicQuantizeMatMul || convolves_dynamically(node);
}

bool has_quantized_run(const Node &node) {
  const ops::Custom *custom = ops::as_custom(*node.op);
  return custom && custom->has_quantized();
}

std::string product_addition(const Node &node) {
  return node.op->product->addition ? node.op->product->addition(node.attrs) : std::string();
}

std::string recurrent_weight_misfit(const Tensor &weight) {
  const Quantizer *q = weight.quantizer().get();
  if (!q) return kFloatWeights;
  if (weight.rank() != 3) return weights_have_rank(weight.rank());
  if (weight.dim(2) > kDynamicDepth) return sums_are_deep(weight.dim(2), kDynamicDepth);
  if (q->per_block() && (q->axis() != 2 || q->block_size() < weight.dim(2)))
    return "its weights have a scale for each block, not for each row";
  if (q->dtype() != QTN_INT8 && q->dtype() != QTN_INT4 && q->dtype() != QTN_INT2)
    return cat("its weights are ", dtype_name(q->dtype()));
  if (q->per_channel() && q->axis() != 1)
    return cat("its weights have scales along axis ", q->axis(), ", not for each row");
  return is_around_zero(*q) ? std::string() : kZeroPoint;
}

std::size_t output_channel_axis(const Node &node) {
  if (is_dynamic_product(node)) return convolves_dynamically(node) ? 0 : 1;
  return node.op->product->channel_axis(node.attrs);
}

std::int64_t output_channels(const Node &node, const Shape &weight) {
  const std::int64_t channels = weight[output_channel_axis(node)];
  const std::int64_t groups = node.op->product->channel_groups ? node.op->product->channel_groups(node.attrs) : 1;
  // The operator refuses groups that its input channels do not split into.
  return groups >= 1 && groups <= weight[0] ? channels * groups : channels;
}

bool is_of_channels(const Tensor &added, std::int64_t channels) {
  return added.count() == channels && (added.rank() == 0 || added.shape().back() == channels);
}

IntegerForm integer_form(const Graph &g, const Node &node) { return fit_of(g, node).form; }

std::string float_reason(const Graph &g, const Node &node) { return fit_of(g, node).misfit; }

}  // namespace qtn::graph
