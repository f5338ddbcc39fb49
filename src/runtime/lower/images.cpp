// SPDX-License-Identifier: Apache-2.0
// Operators that run by their definitions on images as they lie: they see the channels as the last axis.
#include <algorithm>
#include <numeric>

#include "runtime/lower/kinds.hpp"

namespace qtn::runtime {

using graph::kNoValue;
using graph::ValueId;

namespace {

/// A dense image of this shape as the contiguous tensor that it is in memory.
SlotId channels_as_last_axis(Lowering &l, SlotId image, Shape shape) {
  std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
  return l.add_view(image, {shape, contiguous_strides(shape), 0});
}

/// Value v broadcast to `rank` axes, seen with its channels as the last one.
SlotId channels_last(Lowering &l, ValueId v, std::size_t rank) {
  Shape shape = l.shape_of(v);
  SlotId s = l.any_real(v);
  if (shape.size() == rank) {
    if (!same_layout(shape, l.form(s).strides, channels_last_strides(shape))) s = l.real_image(v);
  } else {
    s = l.real(v);
    while (shape.size() < rank) shape.insert(0, 1);
    if (!same_layout(shape, contiguous_strides(shape), channels_last_strides(shape)))
      s = l.copied(l.add_view(s, {shape, contiguous_strides(shape), 0}), channels_last_strides(shape));
  }
  return channels_as_last_axis(l, s, shape);
}

/// The first result has the shape of the images, and others are numbers.
bool run_on_images(Lowering &l) {
  const Shape &shape = l.shape_of(l.output());
  const std::size_t rank = shape.size();
  if (rank < 3 || rank > 5) return false;
  bool image = false;
  for (const ValueId v : l.node().inputs) {
    if (v == kNoValue) continue;
    const SlotId s = l.any_real(v);
    image = image || (l.shape_of(v) == shape && l.is_dense_image(s) && !is_contiguous(l.form(s)));
  }
  if (!image) return false;
  OperandRefs refs;
  for (const ValueId v : l.node().inputs) {
    const bool is_number = v != kNoValue && element_count(l.shape_of(v)) == 1;
    refs.inputs.push_back(v == kNoValue ? kNoSlot : is_number ? l.real(v) : channels_last(l, v, rank));
  }
  const SlotId y = l.add_slot({l.type_of(l.output()).dtype, shape, channels_last_strides(shape), nullptr});
  std::vector<SlotId> results{y};
  refs.outputs = {channels_as_last_axis(l, y, shape)};
  for (const ValueId v : std::span(l.node().outputs).subspan(1)) {
    results.push_back(v == kNoValue ? kNoSlot : l.plain_slot(l.type_of(v).dtype, l.shape_of(v)));
    refs.outputs.push_back(results.back());
  }
  l.add_step(make_run(l.node(), refs));
  for (std::size_t i = 0; i < results.size(); ++i)
    if (results[i] != kNoSlot) l.set_real(l.node().outputs[i], results[i]);
  return true;
}

}  // namespace

/// Element by element over images, as they lie: the operator sees the channels as the last axis.
bool lower_on_images(Lowering &l) {
  return l.node().op->elementwise && l.node().outputs.size() == 1 && run_on_images(l);
}

/// The same from or to truth values, and by them.
bool lower_truths_on_images(Lowering &l) {
  constexpr const ops::OpDef *kOps[] = {
      &ops::kEqual, &ops::kGreater, &ops::kGreaterOrEqual, &ops::kLess, &ops::kLessOrEqual, &ops::kNot, &ops::kAnd,
      &ops::kOr,    &ops::kXor,     &ops::kWhere,          &ops::kCast};
  return std::ranges::any_of(kOps, [&](const ops::OpDef *op) { return l.node().op == op; }) && run_on_images(l);
}

/// The same between floats and integers, on one grid for all that follows from a run.
bool lower_grid_on_images(Lowering &l) {
  const graph::Node &node = l.node();
  if (node.op == &ops::kDynamicQuantizeLinear)
    return ops::own_grid("session", node.attrs).granularity == ops::Granularity::tensor && run_on_images(l);
  return node.op == &ops::kDequantizeLinear && l.shape_of(node.inputs[1]).empty() &&
         l.g.value(l.output()).quantizer == nullptr && run_on_images(l);
}

namespace {

/// What Resize is given for each place of an image, in the order of its axes, or for all axes; without data: it is no such
/// list, or channels and batch are resized too.
Tensor of_places(Lowering &l, std::size_t rank, ValueId given) {
  const Tensor t = given == kNoValue ? Tensor() : l.constant_of(given);
  if (!t.has_data() || t.count() == 0) return Tensor();
  std::vector<std::int64_t> axes = l.node().attrs.get_ints("axes");
  if (axes.empty()) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), std::int64_t{0});
  }
  if (t.rank() != 1 || t.count() != static_cast<std::int64_t>(axes.size())) return Tensor();
  Tensor places(t.dtype(), Shape{static_cast<std::int64_t>(rank) - 2});
  const bool are_scales = t.dtype() == QTN_FLOAT32;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    auto at = std::ranges::find_if(axes, [&](std::int64_t a) {
      return a == static_cast<std::int64_t>(axis) ||
             a + static_cast<std::int64_t>(rank) == static_cast<std::int64_t>(axis);
    });
    if (at == axes.end() && axis < 2) continue;
    if (at == axes.end()) return Tensor();
    const Tensor one = t.select(0, at - axes.begin());
    if (axis >= 2)
      copy_elements(places.select(0, static_cast<std::int64_t>(axis) - 2), one);
    else if (are_scales && *one.as<const float>() != 1)
      return Tensor();
  }
  return places;
}

/// Whether it lies with its channels last, as a step made it or as a view of what the run is given.
bool has_channels_last(Lowering &l, SlotId x) {
  const std::size_t rank = l.form(x).shape.size();
  return rank >= 3 && rank <= 5 && l.is_dense_image(x) && !is_contiguous(l.form(x));
}

}  // namespace

/// Images as they lie: Resize sees the channels as the last axis, and is told about the axes of places.
bool lower_resize_on_images(Lowering &l) {
  const graph::Node &node = l.node();
  const Attrs &attrs = node.attrs;
  if (node.op != &ops::kResize || attrs.get_string("coordinate_transformation_mode", "") == "tf_crop_and_resize" ||
      attrs.get_string("keep_aspect_ratio_policy", "stretch") != "stretch")
    return false;
  const Shape &from = l.shape_of(l.input(0)), &shape = l.shape_of(l.output());
  const std::size_t rank = shape.size();
  const SlotId x = l.any_real(l.input(0));
  if (from[0] != shape[0] || from[1] != shape[1] || !has_channels_last(l, x)) return false;
  const Tensor scales = of_places(l, rank, l.input(2)), sizes = of_places(l, rank, l.input(3));
  if (scales.has_data() == sizes.has_data()) return false;
  graph::Node places = node;
  std::vector<std::int64_t> axes;
  for (std::size_t axis = 1; axis + 1 < rank; ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  places.attrs.set("axes", axes);
  const SlotId y = l.real_slot(shape, channels_last_strides(shape));
  OperandRefs refs;
  refs.inputs = {channels_as_last_axis(l, x, from), kNoSlot, scales.has_data() ? l.add_constant(scales) : kNoSlot,
                 sizes.has_data() ? l.add_constant(sizes) : kNoSlot};
  refs.outputs = {channels_as_last_axis(l, y, shape)};
  l.add_step(make_run(places, refs));
  l.set_real(l.output(), y);
  return true;
}

/// Operators that go by strides.
bool lower_moved_images(Lowering &l) {
  const SlotId x = l.any_real(l.input(0));
  const bool by_strides = l.node().op == &ops::kPad || l.node().op == &ops::kTile || l.node().op == &ops::kSlice;
  if (!by_strides || l.node().clamp || !has_channels_last(l, x)) return false;
  OperandRefs refs;
  refs.inputs = {x};
  for (const ValueId v : std::span(l.node().inputs).subspan(1))
    refs.inputs.push_back(v == kNoValue ? kNoSlot : l.real(v));
  const Shape &shape = l.shape_of(l.output());
  const SlotId y = l.real_slot(shape, channels_last_strides(shape));
  refs.outputs = {y};
  l.add_step(make_run(l.node(), refs));
  l.set_real(l.output(), y);
  return true;
}

}  // namespace qtn::runtime
