// SPDX-License-Identifier: Apache-2.0
#include "graph/integer.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "ops/common/dynamic_quantizer.hpp"
#include "ops/common/recurrent_op.hpp"

namespace qtn::graph {
namespace {

const Value *operand(const Graph &g, const Node &node, std::size_t i) {
  return i < node.inputs.size() && node.inputs[i] != kNoValue ? &g.value(node.inputs[i]) : nullptr;
}

bool is_activation_8bit(const Value *v) { return v && !v->is_constant() && is_8bit_activation(v->quantizer); }

/// Why weights are not constant int8, int4 or int2 on a symmetric grid, whole or by output channel.
std::string weight_misfit(const Node &node, const Value *w) {
  if (!w || !w->is_constant()) return "its weights are not a constant";
  if (!w->quantizer) return "its weights are floats";
  const Quantizer &q = *w->quantizer;
  if (plain_dtype(q.dtype()) != QTN_INT8) return cat("its weights are ", dtype_name(q.dtype()));
  if (q.per_block()) return "its weights have a scale for each block";
  if (!std::ranges::all_of(q.zero_points(), [](std::int64_t z) { return z == 0; }))
    return "its weights have a zero point";
  if (!takes_rank(node, w->constant.rank())) return cat("its weights have ", w->constant.rank(), " dimensions");
  const auto rank = static_cast<std::int64_t>(w->constant.rank());
  const std::int64_t axis = q.axis() < 0 ? q.axis() + rank : q.axis();
  const bool by_output = !q.per_channel() || axis == static_cast<std::int64_t>(output_channel_axis(node));
  return by_output ? std::string() : cat("its weights have scales along axis ", axis, ", not by output channel");
}

/// Why a linear node does not run on integers.
std::string linear_misfit(const Graph &g, const Node &node) {
  if (!is_activation_8bit(operand(g, node, 0))) return "its operand is not on a grid of 8 bits";
  if (std::string misfit = weight_misfit(node, operand(g, node, 1)); !misfit.empty()) return misfit;
  const Value *bias = operand(g, node, 2);
  if (bias && !bias->is_constant()) return "its bias is not a constant";
  const Shape &weight = operand(g, node, 1)->constant.shape();
  const std::int64_t channels = output_channels(node, weight);
  const std::int64_t depth = element_count(weight) / std::max<std::int64_t>(1, channels);
  if (depth > kWeightDepth) return cat("an output sums ", depth, " products, and int32 surely holds ", kWeightDepth);
  if (std::string addition = product_addition(node); !addition.empty()) return addition;
  if (bias && bias->constant.count() != channels)
    return cat("its bias has ", bias->constant.count(), " values for ", channels, " output channels");
  const Value &y = g.value(node.outputs[0]);
  return !y.quantizer || is_8bit_activation(y.quantizer) ? std::string()
                                                         : "its result is on a grid that is not of 8 bits";
}

/// Absent, or constant: one number, or one for each of the columns.
bool of_columns(const Value *v, std::int64_t columns) {
  return !v || (v->is_constant() && !v->quantizer && v->constant.rank() < 2 &&
                (v->constant.count() == 1 || v->constant.count() == columns));
}

bool are_scales(const Tensor &t) {
  if (t.dtype() != QTN_FLOAT32) return false;
  const std::vector<float> values = float_values(t, "scales");
  return std::all_of(values.begin(), values.end(), [](float s) { return s > 0 && std::isfinite(s); });
}

bool fits_dynamic(const Graph &g, const Node &node) {
  if (!is_dynamic_product(node)) return false;
  const Value &w = *operand(g, node, 1);
  if (!w.is_constant() || w.quantizer || w.constant.rank() != 2) return false;
  const std::int64_t depth = w.constant.dim(0), columns = w.constant.dim(1);
  if (depth < 1 || depth > kDynamicDepth || columns < 1) return false;
  for (const std::size_t i : {2, 3, 4})
    if (!of_columns(operand(g, node, i), columns)) return false;
  const bool rows = ops::own_grid(node.op->name, node.attrs).granularity == ops::Granularity::row;
  if (rows && (w.constant.dtype() != QTN_INT8 || operand(g, node, 3))) return false;
  return are_scales(operand(g, node, 2)->constant);
}

bool fits_table(const Graph &g, const Node &node) {
  if (!node.op->elementwise) return false;
  std::size_t activations = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Value *v = operand(g, node, i);
    if (!v) continue;
    if (is_activation_8bit(v))
      ++activations;
    else if (!v->is_constant() || v->constant.count() != 1)
      return false;
  }
  return activations == 1;
}

bool fits_move(const Graph &g, const Node &node) {
  if (!ops::moves(*node.op, node.attrs) || node.clamp) return false;
  const QuantizerPtr &q = g.value(node.outputs[0]).quantizer;
  const auto same = [&](const Value &v) { return v.quantizer && *v.quantizer == *q; };
  for (const ValueId id : node.outputs)
    if (id != kNoValue && !same(g.value(id))) return false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Value *v = operand(g, node, i);
    if (!v) continue;
    if (node.op->moved.holds(i) ? !same(*v) : !v->is_constant() && v->quantizer) return false;
  }
  return true;
}

bool fits_recurrent(const Graph &g, const Node &node) {
  if (!ops::is_recurrent(*node.op) || node.clamp) return false;
  for (const std::size_t i : {1, 2})
    if (const Value *v = operand(g, node, i); !v || !v->is_constant() || !is_recurrent_weight(v->constant))
      return false;
  for (const std::size_t i : {3, 7})  // bias, peepholes
    if (const Value *v = operand(g, node, i); v && !v->is_constant()) return false;
  return true;
}

/// Parts on grids of their own are looked up in a table that leads to the result's.
bool fits_join(const Graph &g, const Node &node) {
  return node.op->joins && !node.clamp && std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
           return is_8bit_activation(g.value(v).quantizer);
         });
}

bool fits_arithmetic(const Graph &g, const Node &node) {
  if (has_quantized_run(node))
    return std::ranges::any_of(node.inputs,
                               [&](ValueId v) { return v != kNoValue && is_activation_8bit(&g.value(v)); });
  if (!node.op->run_quantized || is_linear(node)) return false;
  for (std::size_t i = 0; i < node.op->activations; ++i) {
    const Value *v = operand(g, node, i);
    if (!v || !is_8bit_activation(v->quantizer)) return false;
  }
  return true;
}

/// Registered operators bring a definition along; ours for sums of elements along an axis has no kernel.
bool has_arithmetic_kernel(const Node &node) {
  return !has_quantized_run(node) && (node.op->elementwise || node.op->averages_places);
}

}  // namespace

bool is_8bit_activation(const QuantizerPtr &q) {
  return q && q->per_tensor() && (q->dtype() == QTN_UINT8 || q->dtype() == QTN_INT8);
}

bool takes_rank(const Node &node, std::size_t rank) { return is_convolution(node) ? rank >= 3 : rank == 2; }

bool is_convolution(const Node &node) { return node.op->product && node.op->product->convolution; }

bool is_linear(const Node &node) { return node.op->product; }

bool is_dynamic_product(const Node &node) { return node.op == &ops::kDynamicQuantizeMatMul; }

bool has_quantized_run(const Node &node) {
  const ops::Custom *custom = ops::as_custom(*node.op);
  return custom && custom->has_quantized();
}

std::string product_addition(const Node &node) {
  return node.op->product->addition ? node.op->product->addition(node.attrs) : std::string();
}

bool is_recurrent_weight(const Tensor &weight) {
  const Quantizer *q = weight.quantizer().get();
  if (!q || weight.rank() != 3 || weight.dim(2) > kDynamicDepth) return false;
  if (q->per_block() && (q->axis() != 2 || q->block_size() < weight.dim(2))) return false;
  if (q->dtype() != QTN_INT8 && q->dtype() != QTN_INT4 && q->dtype() != QTN_INT2) return false;
  if (q->per_channel() && q->axis() != 1) return false;
  return std::ranges::all_of(q->zero_points(), [](std::int64_t z) { return z == 0; });
}

std::size_t output_channel_axis(const Node &node) { return node.op->product->channel_axis(node.attrs); }

std::int64_t output_channels(const Node &node, const Shape &weight) {
  const std::int64_t channels = weight[output_channel_axis(node)];
  const std::int64_t groups = node.op->product->channel_groups ? node.op->product->channel_groups(node.attrs) : 1;
  // The operator refuses groups that its input channels do not split into.
  return groups >= 1 && groups <= weight[0] ? channels * groups : channels;
}

IntegerForm integer_form(const Graph &g, const Node &node) {
  if (is_linear(node)) return linear_misfit(g, node).empty() ? IntegerForm::linear : IntegerForm::none;
  if (fits_dynamic(g, node)) return IntegerForm::dynamic;
  if (fits_recurrent(g, node)) return IntegerForm::recurrent;
  if (node.outputs.empty() || node.outputs[0] == kNoValue || !is_8bit_activation(g.value(node.outputs[0]).quantizer))
    return IntegerForm::none;
  if (fits_move(g, node) || fits_join(g, node)) return IntegerForm::move;
  if (fits_table(g, node)) return IntegerForm::table;
  if (!fits_arithmetic(g, node)) return IntegerForm::none;
  return has_arithmetic_kernel(node) ? IntegerForm::arithmetic : IntegerForm::definition;
}

std::string float_reason(const Graph &g, const Node &node) {
  if (is_linear(node)) return linear_misfit(g, node);
  if (integer_form(g, node) != IntegerForm::none) return {};
  if (ops::is_recurrent(*node.op)) return "its weights are not constant integers around 0";
  if (is_dynamic_product(node)) return "its weights and scales are not constants that kernels take";
  const bool moves = ops::moves(*node.op, node.attrs);
  if (!moves && !node.op->elementwise && !node.op->run_quantized) return "the operator has no integer form";
  const bool on_grid =
      !node.outputs.empty() && node.outputs[0] != kNoValue && is_8bit_activation(g.value(node.outputs[0]).quantizer);
  if (!on_grid) return "its result is not on a grid of 8 bits";
  return moves ? "what it moves is not on the grid of its result" : "its operands are not on grids of 8 bits";
}

}  // namespace qtn::graph
