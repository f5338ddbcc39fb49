// SPDX-License-Identifier: Apache-2.0
// Elements moved and chosen: as views where strides allow it, side by side in one image, or copied.
#include <algorithm>
#include <functional>

#include "ops/common/requantization.hpp"
#include "runtime/lower/kinds.hpp"

namespace qtn::runtime {

using graph::kNoValue;
using graph::ValueId;

namespace {

/// The node's images from number `first` on side by side along their channels in y, part_of(value) in that order: the
/// steps that compute them write into y where concatenations alone read them, readers_of(number) many; others are
/// copied.
void join_channels(
    Lowering &l, SlotId y, const std::function<SlotId(ValueId)> &part_of, std::size_t first = 0,
    const std::function<std::size_t(std::size_t)> &readers_of = [](std::size_t) { return 1; }) {
  std::ptrdiff_t channel = 0;
  for (std::size_t i = 0; i < l.node().inputs.size(); ++i) {
    const ValueId v = l.input(i);
    const View place{l.shape_of(v), l.form(y).strides, channel};
    channel += l.shape_of(v)[1];
    if (i < first || element_count(l.shape_of(v)) == 0) continue;
    const SlotId part = part_of(v);
    Step *step = l.is_dense_image(part) ? l.open_step(v, part, readers_of(i)) : nullptr;
    if (step && step->spread_output(as_image(l.form(y).shape, l.form(y).strides)->pixel)) {
      l.place_in(part, y, place);
    } else {
      l.add_step(make_copy(l.edge(part), l.edge(l.add_view(y, place))));
    }
  }
}

/// The integers of a value that this node moves, on the grid of its output.
SlotId on_grid_of_output(Lowering &l, ValueId v) {
  const SlotId x = l.integer(v);
  const QuantizerPtr q = canonical(l.g.value(l.output()).quantizer);
  if (*l.form(x).quantizer == *q) return x;
  const Tensor bytes = ops::all_bytes(l.form(x).quantizer);
  const Tensor *operand = &bytes;
  const auto table = ops::table_of(ops::run_on_bytes(ops::kIdentity, {{}, std::span(&operand, 1), 1}, q, nullptr));
  if (auto *step = dynamic_cast<TailedStep *>(l.open_step(v, x))) {
    const SlotId y = l.add_slot({QTN_UINT8, l.form(x).shape, l.form(x).strides, q});
    step->append(make_table_tail(table, l.isa), y, "Requantize");
    return y;
  }
  const SlotId from = l.dense(x), y = l.add_slot({QTN_UINT8, l.form(from).shape, l.form(from).strides, q});
  StepPtr step = make_table(l.edge(from), l.edge(y), table, l.isa);
  step->op = "Requantize";
  l.add_step(std::move(step));
  return y;
}

bool join_channels_on_grid(Lowering &l) {
  const Shape &shape = l.shape_of(l.output());
  if (shape.size() < 3 || shape.size() > 5 || element_count(shape) == 0) return false;
  if (normalize_axis(l.node().attrs.get_int("axis", 0), shape.size(), "Concat") != 1) return false;
  if (std::ranges::none_of(l.node().inputs, [&](ValueId v) { return lies_as_image(l.form(l.integer(v))); }))
    return false;
  const SlotId y = l.integer_output(l.output(), shape, channels_last_strides(shape));
  join_channels(l, y, [&](ValueId v) { return on_grid_of_output(l, v); });
  return true;
}

/// Neighbours among channels.
struct Run {
  std::int64_t first, count;
};

/// What a Gather takes of so many channels, in that order; nothing where it takes one that there is not.
std::vector<Run> runs_of(const Tensor &indices, std::int64_t channels) {
  std::vector<Run> runs;
  for (const std::int64_t index : int_values(indices, "indices")) {
    const std::int64_t channel = index < 0 ? index + channels : index;
    if (channel < 0 || channel >= channels) return {};
    if (!runs.empty() && runs.back().first + runs.back().count == channel)
      ++runs.back().count;
    else
      runs.push_back({channel, 1});
  }
  return runs;
}

/// Channels of an image, a few runs of them, such as all and some of them once more: the step that computes the image
/// writes those itself where nothing else reads it.
bool choose_channels(Lowering &l) {
  constexpr std::size_t kMostRuns = 12;
  const Shape &shape = l.shape_of(l.output());
  if (l.node().op != &ops::kGather || !l.constant_of(l.input(1)).has_data() || l.constant_of(l.input(1)).rank() != 1 ||
      shape.size() < 3 || shape.size() > 5 || element_count(shape) == 0 ||
      normalize_axis(l.node().attrs.get_int("axis", 0), shape.size(), "Gather") != 1)
    return false;
  const SlotId x = l.integer(l.input(0));
  const std::int64_t channels = l.form(x).shape[1];
  const std::vector<Run> runs = runs_of(l.constant_of(l.input(1)), channels);
  if (runs.empty() || runs.size() > kMostRuns || !lies_as_image(l.form(x))) return false;
  const SlotId y = l.integer_output(l.output(), shape, channels_last_strides(shape));
  std::ptrdiff_t channel = 0;
  for (const Run &run : runs) {
    Shape part = shape;
    part[1] = run.count;
    const View place{part, l.form(y).strides, channel};
    channel += run.count;
    Step *step = run.count == channels && l.is_dense_image(x) ? l.open_step(l.input(0), x) : nullptr;
    if (step && step->spread_output(as_image(l.form(y).shape, l.form(y).strides)->pixel))
      l.place_in(x, y, place);
    else
      l.add_step(make_copy(l.edge(l.add_view(x, {part, l.form(x).strides, run.first})), l.edge(l.add_view(y, place))));
  }
  return true;
}

}  // namespace

bool lower_movement(Lowering &l) {
  if (l.node().op == &ops::kMaxPool || l.node().op == &ops::kGlobalMaxPool) {
    const std::size_t rank = l.shape_of(l.input(0)).size();
    if (rank >= 3 && rank <= 5) return lower_pool(l);
  }
  if ((l.node().op == &ops::kConcat && join_channels_on_grid(l)) || choose_channels(l)) return true;
  std::vector<SlotId> views;
  if (l.as_views(l.integer(l.input(l.node().op->moved.first)), views)) {
    for (std::size_t o = 0; o < views.size(); ++o) l.set_integer(l.node().outputs[o], views[o]);
    return true;
  }
  OperandRefs refs;
  for (std::size_t i = 0; i < l.node().inputs.size(); ++i) {
    const ValueId v = l.input(i);
    const bool any_layout = l.node().op == &ops::kWhere;
    refs.inputs.push_back(v == kNoValue  ? kNoSlot
                          : l.is_8bit(v) ? on_grid_of_output(l, v)
                          : any_layout   ? l.any_real(v)
                                         : l.real(v));
  }
  const SlotForm x = l.form(l.integer(l.input(l.node().op->moved.first)));
  const auto strides = [&](const Shape &shape) {
    if (is_contiguous(x)) return contiguous_strides(shape);
    return x.shape.size() == shape.size() ? strides_as(x, shape) : integer_strides(shape);
  };
  for (const ValueId v : l.node().outputs)
    refs.outputs.push_back(v == kNoValue ? kNoSlot : l.integer_output(v, l.shape_of(v), strides(l.shape_of(v))));
  StepPtr step = make_run(l.node(), refs);
  step->integer = true;
  l.add_step(std::move(step));
  return true;
}

namespace {

/// Strides of x, whose channels are two axes that a Reshape makes one, as at the end of a shuffle of channels: such that
/// pixels stay where channels lie side by side.
std::optional<Shape> strides_of_joined_channels(const SlotForm &x, const Shape &target) {
  const std::size_t rank = target.size();
  if (rank < 3 || rank > 5 || x.shape.size() != rank + 1 || x.shape[1] * x.shape[2] != target[1]) return std::nullopt;
  const Shape of_image = channels_last_strides(target);
  Shape strides = x.shape;
  strides[1] = x.shape[2];
  strides[2] = 1;
  for (const std::size_t axis : {std::size_t{0}, std::size_t{2}, std::size_t{3}, std::size_t{4}}) {
    if (axis >= rank) break;
    const std::size_t own = axis == 0 ? 0 : axis + 1;
    if (x.shape[own] != target[axis] || (x.shape[own] > 1 && x.strides[own] < target[1])) return std::nullopt;
    strides[own] = of_image[axis];
  }
  return strides;
}

}  // namespace

bool lower_real_view(Lowering &l) {
  if (!ops::moves(*l.node().op, l.node().attrs) || l.node().clamp) return false;
  std::vector<SlotId> parts;
  const SlotId from = l.any_real(l.input(0));
  const auto joined =
      l.node().op == &ops::kReshape ? strides_of_joined_channels(l.form(from), l.shape_of(l.output())) : std::nullopt;
  if (!l.as_views(from, parts) && !(joined && l.as_views(l.copied(from, *joined), parts))) {
    // A Reshape of strided elements may be one of contiguous elements.
    const Shape &x = l.shape_of(l.input(0));
    if (!l.views({l.type_of(l.input(0)).dtype, x, contiguous_strides(x), nullptr}) ||
        !l.as_views(l.real(l.input(0)), parts))
      return false;
  }
  for (std::size_t o = 0; o < parts.size(); ++o) l.set_real(l.node().outputs[o], parts[o]);
  return true;
}

/// Where an operand lies as an image already; otherwise planes are copied as well one after the other.
bool lower_real_concat(Lowering &l) {
  if (l.node().op != &ops::kConcat || l.node().clamp) return false;
  const Shape &shape = l.shape_of(l.output());
  if (shape.size() < 3 || shape.size() > 5 || element_count(shape) == 0) return false;
  if (normalize_axis(l.node().attrs.get_int("axis", 0), shape.size(), "Concat") != 1) return false;
  if (std::ranges::none_of(l.node().inputs, [&](ValueId v) { return lies_as_image(l.form(l.any_real(v))); }))
    return false;
  const auto part_of = [&](ValueId v) { return l.any_real(v); };
  Lowering::Prefixes *all = l.g.value(l.output()).quantizer ? nullptr : l.prefixes();
  if (!all) {
    const SlotId y = l.real_slot(shape, channels_last_strides(shape));
    join_channels(l, y, part_of);
    l.set_real(l.output(), y);
    return true;
  }
  const std::size_t count = l.node().inputs.size();
  if (all->y == kNoSlot) {
    Shape whole = shape;
    for (std::size_t i = count; i < all->longest.size(); ++i) whole[1] += l.shape_of(all->longest[i])[1];
    all->y = l.real_slot(whole, channels_last_strides(whole));
  }
  join_channels(l, all->y, part_of, all->placed, [&](std::size_t i) {
    return static_cast<std::size_t>(
        std::ranges::count_if(all->lengths, [i](std::size_t length) { return length > i; }));
  });
  all->placed = std::max(all->placed, count);
  l.set_real(l.output(), l.add_view(all->y, {shape, l.form(all->y).strides, 0}));
  return true;
}

}  // namespace qtn::runtime
