// SPDX-License-Identifier: Apache-2.0
#include "graph/passes/affine.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "graph/facts.hpp"
#include "graph/integer.hpp"
#include "graph/tensors.hpp"
#include "ops/common/channel_line.hpp"
#include "ops/common/epsilon.hpp"

namespace qtn::graph {

bool plain_constant(const Graph &g, ValueId v) {
  return v != kNoValue && g.value(v).is_constant() && !g.value(v).quantizer;
}

Affine affine_of(const Graph &g, const Node &bn) {
  std::array<std::vector<float>, 4> p;
  for (std::size_t i = 0; i < 4; ++i) p[i] = float_values(g.value(bn.inputs[i + 1]).constant, "BatchNormalization");
  const double epsilon = bn.attrs.get_float("epsilon", ops::kDefaultEpsilon);
  Affine a;
  for (std::size_t c = 0; c < p[0].size(); ++c) {
    const auto [factor, addend] = ops::channel_line(p[0][c], p[1][c], p[2][c], p[3][c], epsilon);
    a.factor.push_back(factor);
    a.offset.push_back(addend);
  }
  return a;
}

bool constant_parameters(const Graph &g, const Node &bn) {
  if (bn.inputs.size() < 5 || bn.attrs.get_int("training_mode", 0) != 0) return false;
  for (std::size_t i = 1; i < 5; ++i)
    if (!plain_constant(g, bn.inputs[i]) || g.value(bn.inputs[i]).constant.dtype() != QTN_FLOAT32 ||
        g.value(bn.inputs[i]).constant.count() != g.value(bn.inputs[1]).constant.count())
      return false;
  return true;
}

namespace {

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

}  // namespace

bool fold_into(Graph &g, Node &linear, const Affine &a) {
  const bool takes_factors =
      is_linear(linear) && linear.op->product->has_bias && product_addition(linear).empty() && !linear.clamp;
  if (!takes_factors || !plain_constant(g, input_of(linear, 1))) return false;
  const ValueId bias_id = input_of(linear, 2);
  const Tensor &old_weight = g.value(linear.inputs[1]).constant;
  if (old_weight.dtype() != QTN_FLOAT32 || old_weight.rank() < 2) return false;
  // Where groups share a place along the axis, they lie one after the other along the input channels.
  const std::size_t axis = output_channel_axis(linear);
  const auto of_group = static_cast<std::size_t>(old_weight.dim(axis));
  const auto channels = static_cast<std::size_t>(output_channels(linear, old_weight.shape()));
  if (channels != a.factor.size() || channels == 0) return false;
  const std::size_t groups = channels / of_group;
  if (groups > 1 && static_cast<std::size_t>(old_weight.dim(0)) % groups != 0) return false;
  if (bias_id != kNoValue &&
      (!plain_constant(g, bias_id) || !is_of_channels(g.value(bias_id).constant, static_cast<std::int64_t>(channels))))
    return false;

  Tensor weight = old_weight.clone();
  const auto inner = static_cast<std::size_t>(element_count(weight.shape(), axis + 1, weight.rank()));
  const auto count = static_cast<std::size_t>(weight.count()), group_size = count / groups;
  for (std::size_t i = 0; i < count; ++i)
    weight.as<float>()[i] *= a.factor[i / group_size * of_group + i / inner % of_group];
  std::vector<float> bias =
      bias_id == kNoValue ? std::vector<float>(channels, 0.0f) : float_values(g.value(bias_id).constant, "bias");
  for (std::size_t c = 0; c < channels; ++c) bias[c] = bias[c] * a.factor[c] + a.offset[c];
  if (!all_finite({weight.as<const float>(), count}) || !all_finite(bias)) return false;

  const std::string base = linear.name;
  linear.inputs.resize(3, kNoValue);
  const ValueId weight_id = g.add_constant(base + "_weight_folded", std::move(weight));
  const ValueId folded_bias = g.add_constant(
      base + "_bias_folded",
      Tensor::from<float>(QTN_FLOAT32, Shape{static_cast<std::int64_t>(channels)}, std::span<const float>(bias)));
  g.value(weight_id).origin = original_name(g.value(linear.inputs[1]));
  if (bias_id != kNoValue) g.value(folded_bias).origin = original_name(g.value(bias_id));
  linear.inputs[1] = weight_id;
  linear.inputs[2] = folded_bias;
  return true;
}

}  // namespace qtn::graph
