// SPDX-License-Identifier: Apache-2.0
// Attention as one node, of ONNX and of ONNX Runtime.
#include <cmath>

#include "ops/common/grouped_queries.hpp"
#include "ops/common/padding_row.hpp"
#include "runtime/lower_real.hpp"
#include "runtime/steps/heads.hpp"

namespace qtn::runtime {

using graph::kNoValue;
using graph::ValueId;

namespace {

constexpr std::size_t kNoOutput = ops::kVariadic;

/// [batch][place][head * feature] as [batch][head][place][feature]; four axes are these already.
Edge as_heads(Edge x, std::int64_t heads) {
  SlotForm &f = x.form;
  if (f.shape.size() == 4) return x;
  const std::int64_t features = f.shape[2] / heads;
  f.strides = {f.strides[0], features * f.strides[2], f.strides[1], f.strides[2]};
  f.shape = {f.shape[0], heads, f.shape[1], features};
  return x;
}

/// Places of [batch][head][place][feature] from one on.
View places_from(const SlotForm &f, std::int64_t first, std::int64_t count) {
  return {{f.shape[0], f.shape[1], count, f.shape[3]}, f.strides, first * f.strides[2]};
}

}  // namespace

ValueId RealLowering::wanted(std::size_t o) const { return o < node_->outputs.size() ? node_->outputs[o] : kNoValue; }

/// x behind what was there before, as one tensor of heads: the node's output o where it has that. x itself where there
/// is nothing to do. `first` is where the bias of x begins.
Edge RealLowering::joined_heads(const Edge &x, ValueId past, std::size_t o, ValueId bias, std::size_t first) {
  const ValueId y = wanted(o);
  if (past == kNoValue && y == kNoValue && bias == kNoValue) return x;
  const std::int64_t before = past == kNoValue ? 0 : shape_of(past)[2];
  Shape shape = x.form.shape;
  shape[2] += before;
  const SlotId all = real_slot(shape, contiguous_strides(shape));
  if (before > 0) add_step(make_heads(edge(any_real(past)), edge(add_view(all, places_from(form(all), 0, before)))));
  const SlotId now = before > 0 ? add_view(all, places_from(form(all), before, x.form.shape[2])) : all;
  add_step(make_heads(x, edge(now), bias == kNoValue ? kNoSlot : real(bias), first));
  if (y != kNoValue) settle(y, all);
  return edge(all);
}

void RealLowering::lower_heads(HeadAttention attention) {
  const Shape &shape = shape_of(output());
  const SlotId y = real_slot(shape, contiguous_strides(shape));
  attention.y = as_heads(edge(y), attention.q.form.shape[1]);
  add_step(make_head_attention(std::move(attention), clamp(), isa_));
  settle(output(), y);
}

bool RealLowering::lower_real_heads() {
  if (output() == kNoValue) return false;
  // Without keys, or features, there are no products.
  for (std::size_t i = 0; i < 3; ++i)
    if (input(i) != kNoValue && element_count(shape_of(input(i))) == 0) return false;
  return lower_onnx_attention() || lower_multi_head_attention() || lower_group_query_attention();
}

bool RealLowering::has_real_inputs(std::initializer_list<std::size_t> inputs) const {
  return std::all_of(inputs.begin(), inputs.end(),
                     [&](std::size_t i) { return input(i) == kNoValue || is_real(input(i)); });
}

bool RealLowering::lower_onnx_attention() {
  enum : std::size_t { kMask = 3, kPastKey, kPastValue, kLengths, kScores = 3 };
  const ValueId mask = input(kMask);
  if (node_->op != &ops::kAttention || wanted(kScores) != kNoValue) return false;
  if (!has_real_inputs({0, 1, 2, kPastKey, kPastValue}) || (mask != kNoValue && element_count(shape_of(mask)) == 0))
    return false;
  const std::int64_t kv_heads = node_->attrs.get_int("kv_num_heads", 0);
  HeadAttention a{};
  a.q = as_heads(edge(side_by_side(input(0))), node_->attrs.get_int("q_num_heads", 0));
  if (mask != kNoValue) a.mask = edge(side_by_side(mask));
  if (input(kLengths) != kNoValue) a.lengths = real(input(kLengths));
  a.past = input(kPastKey) == kNoValue ? 0 : shape_of(input(kPastKey))[2];
  a.left = node_->attrs.get_int("left_window_size", -1);
  a.right = node_->attrs.get_int("is_causal", 0) != 0 ? 0 : node_->attrs.get_int("right_window_size", -1);
  const auto features = static_cast<double>(a.q.form.shape[3]);
  a.scale = static_cast<float>(node_->attrs.get_float("scale", 1 / std::sqrt(features)));
  a.softcap = static_cast<float>(node_->attrs.get_float("softcap", 0));
  a.k = joined_heads(as_heads(edge(any_real(input(1))), kv_heads), input(kPastKey), 1);
  a.v = joined_heads(as_heads(edge(any_real(input(2))), kv_heads), input(kPastValue), 2);
  lower_heads(std::move(a));
  return true;
}

bool RealLowering::lower_multi_head_attention() {
  enum : std::size_t { kBias = 3, kPadding, kAdded, kPastKey, kPastValue };
  if (node_->op != &ops::kMultiHeadAttention) return false;
  if (!has_real_inputs({0, 1, 2, kBias, kAdded, kPastKey, kPastValue})) return false;
  const std::int64_t heads = node_->attrs.get_int("num_heads", 0);
  const ValueId bias = input(kBias), padding = input(kPadding), added = input(kAdded);
  HeadAttention a{};
  const Edge q = as_heads(edge(side_by_side(input(0))), heads);
  a.q = joined_heads(q, kNoValue, kNoOutput, bias, 0);
  if (added != kNoValue) a.mask = edge(side_by_side(added));
  if (padding != kNoValue) a.padding = edge(real(padding));
  a.padded = static_cast<float>(node_->attrs.get_float("mask_filter_value", ops::PaddingRow::kHidden));
  a.past = input(kPastKey) == kNoValue ? 0 : shape_of(input(kPastKey))[2];
  a.hides_by_number = node_->attrs.get_int("unidirectional", 0) != 0 && q.form.shape[2] > 1;
  if (a.hides_by_number) a.right = 0;
  const double scale = node_->attrs.get_float("scale", 0);
  a.scale = static_cast<float>(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(q.form.shape[3])));
  const auto width = static_cast<std::size_t>(heads * q.form.shape[3]);
  a.k = joined_heads(as_heads(edge(any_real(input(1))), heads), input(kPastKey), 1, bias, width);
  a.v = joined_heads(as_heads(edge(any_real(input(2))), heads), input(kPastValue), 2, bias, 2 * width);
  lower_heads(std::move(a));
  return true;
}

bool RealLowering::lower_group_query_attention() {
  using Form = ops::GroupedForm;
  if (node_->op != &ops::kGroupQueryAttention || !has_real_inputs({Form::kQuery, Form::kKey, Form::kValue}))
    return false;
  std::vector<Tensor> storage;
  const std::vector<const Tensor *> operands = constant_operands(storage);
  if (!storage[Form::kTotal].has_data()) return false;
  const ops::Call call{node_->attrs, operands, node_->outputs.size()};
  const Form f(call);
  std::vector<SlotId> inputs;
  for (const ValueId v : node_->inputs) inputs.push_back(v == kNoValue ? kNoSlot : real(v));
  const Shape queries{f.batches, f.heads, f.places, f.features},
      caches{f.batches, f.kv_heads, f.room(call), f.features};
  const SlotId q = real_slot(queries, contiguous_strides(queries)), k = real_slot(caches, contiguous_strides(caches)),
               v = real_slot(caches, contiguous_strides(caches)),
               ends = add_slot({QTN_INT64, {f.batches}, {1}, nullptr});
  add_step(make_grouped_heads(*node_, std::move(inputs), {q, k, v, ends}));
  for (const auto &[o, cache] : {std::pair{1, k}, std::pair{2, v}})
    if (wanted(static_cast<std::size_t>(o)) != kNoValue) settle(wanted(static_cast<std::size_t>(o)), cache);
  HeadAttention a{};
  a.q = edge(q), a.k = edge(k), a.v = edge(v);
  a.lengths = ends;
  a.right = 0;
  if (const std::int64_t window = node_->attrs.get_int("local_window_size", -1); window > 0) a.left = window - 1;
  const double scale = node_->attrs.get_float("scale", 0);
  a.scale = static_cast<float>(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(f.features)));
  a.softcap = static_cast<float>(node_->attrs.get_float("softcap", 0));
  lower_heads(std::move(a));
  return true;
}

}  // namespace qtn::runtime
