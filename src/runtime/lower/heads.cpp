// SPDX-License-Identifier: Apache-2.0
// Attention as one node, of ONNX and of ONNX Runtime.
#include "runtime/steps/heads.hpp"

#include <algorithm>
#include <cmath>

#include "ops/common/grouped_queries.hpp"
#include "ops/common/padding_row.hpp"
#include "runtime/lower/kinds.hpp"

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

/// x behind what was there before, as one tensor of heads: the node's output o where it has that. x itself where there
/// is nothing to do. `first` is where the bias of x begins.
Edge joined_heads(Lowering &l, const Edge &x, ValueId past, std::size_t o, ValueId bias = kNoValue,
                  std::size_t first = 0) {
  const ValueId y = l.output(o);
  if (past == kNoValue && y == kNoValue && bias == kNoValue) return x;
  const std::int64_t before = past == kNoValue ? 0 : l.shape_of(past)[2];
  Shape shape = x.form.shape;
  shape[2] += before;
  const SlotId all = l.real_slot(shape, contiguous_strides(shape));
  if (before > 0)
    l.add_step(make_heads(l.edge(l.any_real(past)), l.edge(l.add_view(all, places_from(l.form(all), 0, before)))));
  const SlotId now = before > 0 ? l.add_view(all, places_from(l.form(all), before, x.form.shape[2])) : all;
  l.add_step(make_heads(x, l.edge(now), bias == kNoValue ? kNoSlot : l.real(bias), first));
  if (y != kNoValue) l.set_real(y, all);
  return l.edge(all);
}

void add_attention(Lowering &l, HeadAttention attention) {
  // Products of floats take what is left of a score under such a cap for zero, and no score comes near it.
  if (attention.softcap >= 0x1p100F) attention.softcap = 0;
  const Shape &shape = l.shape_of(l.output());
  const SlotId y = l.real_slot(shape, contiguous_strides(shape));
  attention.y = as_heads(l.edge(y), attention.q.form.shape[1]);
  l.add_step(make_head_attention(std::move(attention), l.clamp(), l.isa));
  l.set_real(l.output(), y);
}

/// Whether these are floats, and some of them, where they are given.
bool has_real_inputs(Lowering &l, std::initializer_list<std::size_t> inputs) {
  return std::all_of(inputs.begin(), inputs.end(),
                     [&](std::size_t i) { return l.input(i) == kNoValue || l.is_real(l.input(i)); });
}

bool lower_onnx_attention(Lowering &l) {
  enum : std::size_t { kMask = 3, kPastKey, kPastValue, kLengths, kScores = 3 };
  const ValueId mask = l.input(kMask);
  if (l.node().op != &ops::kAttention || l.output(kScores) != kNoValue) return false;
  const bool reads_mask = mask == kNoValue || l.is_real(mask) || l.type_of(mask).dtype == QTN_BOOL;
  if (!has_real_inputs(l, {0, 1, 2, kPastKey, kPastValue}) || !reads_mask ||
      (mask != kNoValue && element_count(l.shape_of(mask)) == 0))
    return false;
  const std::int64_t kv_heads = l.node().attrs.get_int("kv_num_heads", 0);
  HeadAttention a{};
  a.q = as_heads(l.edge(l.side_by_side(l.input(0))), l.node().attrs.get_int("q_num_heads", 0));
  if (mask != kNoValue) a.mask = l.edge(l.side_by_side(mask));
  if (l.input(kLengths) != kNoValue) a.lengths = l.real(l.input(kLengths));
  a.past = l.input(kPastKey) == kNoValue ? 0 : l.shape_of(l.input(kPastKey))[2];
  a.left = l.node().attrs.get_int("left_window_size", -1);
  a.right = l.node().attrs.get_int("is_causal", 0) != 0 ? 0 : l.node().attrs.get_int("right_window_size", -1);
  const auto features = static_cast<double>(a.q.form.shape[3]);
  a.scale = static_cast<float>(l.node().attrs.get_float("scale", 1 / std::sqrt(features)));
  a.softcap = static_cast<float>(l.node().attrs.get_float("softcap", 0));
  a.k = joined_heads(l, as_heads(l.edge(l.any_real(l.input(1))), kv_heads), l.input(kPastKey), 1);
  a.v = joined_heads(l, as_heads(l.edge(l.any_real(l.input(2))), kv_heads), l.input(kPastValue), 2);
  add_attention(l, std::move(a));
  return true;
}

bool lower_multi_head_attention(Lowering &l) {
  enum : std::size_t { kBias = 3, kPadding, kAdded, kPastKey, kPastValue };
  if (l.node().op != &ops::kMultiHeadAttention) return false;
  if (!has_real_inputs(l, {0, 1, 2, kBias, kAdded, kPastKey, kPastValue})) return false;
  const std::int64_t heads = l.node().attrs.get_int("num_heads", 0);
  const ValueId bias = l.input(kBias), padding = l.input(kPadding), added = l.input(kAdded);
  const ValueId bias_of_keys = l.shape_of(l.input(1)).size() == 4 ? kNoValue : bias;  // which in heads have it
  HeadAttention a{};
  const Edge q = as_heads(l.edge(l.side_by_side(l.input(0))), heads);
  a.q = joined_heads(l, q, kNoValue, kNoOutput, bias, 0);
  if (added != kNoValue) a.mask = l.edge(l.side_by_side(added));
  if (padding != kNoValue) a.padding = l.edge(l.real(padding));
  a.padded = static_cast<float>(l.node().attrs.get_float("mask_filter_value", ops::PaddingRow::kHidden));
  a.past = l.input(kPastKey) == kNoValue ? 0 : l.shape_of(l.input(kPastKey))[2];
  a.hides_by_number = l.node().attrs.get_int("unidirectional", 0) != 0 && q.form.shape[2] > 1;
  if (a.hides_by_number) a.right = 0;
  const double scale = l.node().attrs.get_float("scale", 0);
  a.scale = static_cast<float>(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(q.form.shape[3])));
  const auto width = static_cast<std::size_t>(heads * q.form.shape[3]);
  a.k = joined_heads(l, as_heads(l.edge(l.any_real(l.input(1))), heads), l.input(kPastKey), 1, bias_of_keys, width);
  a.v =
      joined_heads(l, as_heads(l.edge(l.any_real(l.input(2))), heads), l.input(kPastValue), 2, bias_of_keys, 2 * width);
  add_attention(l, std::move(a));
  return true;
}

bool lower_group_query_attention(Lowering &l) {
  using Form = ops::GroupedForm;
  const ValueId added = l.input(Form::kAdded), sinks = l.input(Form::kSink);
  if (l.node().op != &ops::kGroupQueryAttention || l.output(Form::kScores) != kNoValue ||
      !has_real_inputs(l, {Form::kQuery, Form::kKey, Form::kValue, Form::kAdded, Form::kSink}))
    return false;
  std::vector<Tensor> storage;
  const std::vector<const Tensor *> operands = l.constant_operands(storage);
  const ops::Call call{l.node().attrs, operands, l.node().outputs.size()};
  const Form f(call);
  // Columns of what is added are places of the whole sequence, of which a sliding cache has the last.
  if (f.slides ? added != kNoValue : !storage[Form::kTotal].has_data()) return false;
  std::vector<SlotId> inputs;
  for (const ValueId v : l.node().inputs) inputs.push_back(v == kNoValue ? kNoSlot : l.real(v));
  const Shape queries{f.batches, f.heads, f.places, f.features};
  const Shape caches = f.cache_shape(f.room(call)), seen = f.keys_shape(call);
  GroupedHeads to{};
  to.queries = l.plain_slot(QTN_FLOAT32, queries), to.ends = l.plain_slot(QTN_INT64, {f.batches});
  to.present_keys = l.plain_slot(f.cache_dtype(), caches), to.present_values = l.plain_slot(f.cache_dtype(), caches);
  to.keys = f.attends_to_caches() ? to.present_keys : l.plain_slot(QTN_FLOAT32, seen);
  to.values = f.attends_to_caches() ? to.present_values : l.plain_slot(QTN_FLOAT32, seen);
  l.add_step(make_grouped_heads(l.node(), std::move(inputs), to));
  for (const auto &[o, cache] :
       {std::pair{Form::kPresentKey, to.present_keys}, std::pair{Form::kPresentValue, to.present_values}})
    if (l.output(o) != kNoValue) l.set_real(l.output(o), cache);
  HeadAttention a{};
  a.q = l.edge(to.queries), a.k = l.edge(to.keys), a.v = l.edge(to.values);
  a.lengths = to.ends;
  if (added != kNoValue) a.mask = l.edge(l.side_by_side(added));
  if (sinks != kNoValue) a.sinks = l.real(sinks);
  a.has_sink = sinks != kNoValue || f.smooth;
  if (f.causal) a.right = 0;
  if (f.window > 0) a.left = f.window - 1;
  a.scale = static_cast<float>(f.scale), a.softcap = static_cast<float>(f.softcap);
  add_attention(l, std::move(a));
  return true;
}

}  // namespace

bool lower_heads(Lowering &l) {
  if (l.output() == kNoValue) return false;
  // Without keys, or features, there are no products.
  for (std::size_t i = 0; i < 3; ++i)
    if (l.input(i) != kNoValue && element_count(l.shape_of(l.input(i))) == 0) return false;
  return lower_onnx_attention(l) || lower_multi_head_attention(l) || lower_group_query_attention(l);
}

}  // namespace qtn::runtime
