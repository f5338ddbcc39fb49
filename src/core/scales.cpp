// SPDX-License-Identifier: Apache-2.0
#include "core/scales.hpp"

#include <numeric>

#include "base/error.hpp"
#include "core/tensor.hpp"

namespace qtn {
namespace {

std::int64_t block_count(std::int64_t dim, std::int64_t block) { return dim / block + (dim % block != 0); }

std::size_t axis_of(const Quantizer &q, const Shape &shape) {
  return normalize_axis(q.axis(), shape.size(), "quantizer");
}

/// The number of each scale, in the shape of the scales, so that scales move as elements do.
Tensor scale_numbers(const Quantizer &q, const Shape &shape) {
  const Tensor numbers(QTN_INT64, scale_shape(q, shape));
  std::iota(numbers.as<std::int64_t>(), numbers.as<std::int64_t>() + numbers.count(), 0);
  return numbers;
}

QuantizerPtr regrouped(const Quantizer &q, std::size_t axis, std::int64_t block, const Tensor &numbers) {
  return q.regrouped(q.scheme(), static_cast<std::int32_t>(axis), block, int_values(numbers, "scales"));
}

}  // namespace

QuantizerPtr moved_scales(const QuantizerPtr &q, std::size_t axis) {
  if (q->axis() == static_cast<std::int32_t>(axis)) return q;
  std::vector<std::int64_t> all(q->count());
  std::iota(all.begin(), all.end(), 0);
  return q->regrouped(q->scheme(), static_cast<std::int32_t>(axis), q->block_size(), all);
}

namespace {

QuantizerPtr single(const Quantizer &q, std::int64_t number) {
  const qscheme scheme = is_symmetric(q.scheme()) ? QTN_PER_TENSOR_SYMMETRIC : QTN_PER_TENSOR_AFFINE;
  return q.regrouped(scheme, 0, 0, std::span(&number, 1));
}

}  // namespace

ScaleLayout scale_layout(const Quantizer &q, const Shape &shape) {
  ScaleLayout layout;
  if (q.per_tensor()) {
    layout.inner = element_count(shape);
    return layout;
  }
  const std::size_t axis = axis_of(q, shape);
  layout.outer = element_count(shape, 0, axis);
  layout.dim = shape[axis];
  layout.inner = element_count(shape, axis + 1, shape.size());
  layout.axis_step = 1;
  if (q.per_block()) {
    layout.block = q.block_size();
    layout.inner_step = 1;
    layout.axis_step = layout.inner;
    layout.outer_step = block_count(layout.dim, layout.block) * layout.inner;
  }
  return layout;
}

Shape scale_shape(const Quantizer &q, const Shape &shape) {
  if (q.per_tensor()) return {};
  const std::size_t axis = axis_of(q, shape);
  if (q.per_channel()) return {shape[axis]};
  Shape grid = shape;
  grid[axis] = block_count(shape[axis], q.block_size());
  return grid;
}

QuantizerPtr select_scales(const QuantizerPtr &q, const Shape &shape, std::size_t axis, std::int64_t index) {
  if (q->per_tensor()) return q;
  const std::size_t own = axis_of(*q, shape);
  if (q->per_channel()) return own == axis ? single(*q, index) : moved_scales(q, own - (axis < own));
  const bool across = own == axis;
  const Tensor numbers =
      scale_numbers(*q, shape).select(static_cast<std::int64_t>(axis), across ? index / q->block_size() : index);
  if (numbers.rank() == 0) return single(*q, *numbers.as<std::int64_t>());
  // One index of a block: what is left has a scale for each element.
  return across ? regrouped(*q, 0, 1, numbers) : regrouped(*q, own - (axis < own), q->block_size(), numbers);
}

QuantizerPtr slice_scales(const QuantizerPtr &q, const Shape &shape, std::size_t axis, std::int64_t start,
                          std::int64_t count, std::int64_t step) {
  if (q->per_tensor()) return q;
  const std::size_t own = axis_of(*q, shape);
  if (q->per_channel() && own != axis) return q;
  if (count == 0)
    fail(QTN_EINVAL, "slice: a tensor quantized per ", q->per_channel() ? "channel" : "block",
         " cannot lose all of its scales");
  const Tensor numbers = scale_numbers(*q, shape);
  const auto part = [&](std::int64_t from, std::int64_t to, std::int64_t by) {
    return numbers.slice(q->per_channel() ? 0 : static_cast<std::int64_t>(axis), from, to, by);
  };
  const std::int64_t end = start + (count - 1) * step + 1;
  if (q->per_channel() || own != axis) return regrouped(*q, own, q->block_size(), part(start, end, step));
  const std::int64_t block = q->block_size();
  if (step == 1 && start % block == 0)
    return regrouped(*q, own, block, part(start / block, block_count(end, block), 1));
  // Blocks are cut: each index gets the scale of its block.
  Shape cut = shape;
  cut[axis] = count;
  const Tensor each(QTN_INT64, cut);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t from = (start + i * step) / block;
    copy_elements(each.slice(static_cast<std::int64_t>(axis), i, i + 1, 1), part(from, from + 1, 1));
  }
  return regrouped(*q, own, 1, each);
}

QuantizerPtr permute_scales(const QuantizerPtr &q, const Shape &shape, std::span<const std::size_t> axes) {
  if (q->per_tensor()) return q;
  const std::size_t own = axis_of(*q, shape);
  const auto to = static_cast<std::size_t>(std::find(axes.begin(), axes.end(), own) - axes.begin());
  if (q->per_channel()) return moved_scales(q, to);
  const std::vector<std::int32_t> order(axes.begin(), axes.end());
  return regrouped(*q, to, q->block_size(), scale_numbers(*q, shape).permute(order));
}

QuantizerPtr reshape_scales(const QuantizerPtr &q, const Shape &shape, const Shape &target) {
  if (q->per_tensor()) return q;
  const std::size_t own = axis_of(*q, shape);
  const std::int64_t outer = element_count(shape, 0, own);
  for (std::size_t axis = 0; axis < target.size(); ++axis)
    if (target[axis] == shape[own] && element_count(target, 0, axis) == outer) return moved_scales(q, axis);
  fail(QTN_ESHAPE, "reshape: ", to_string(shape), " to ", to_string(target), " does not keep axis ", own,
       ", which the scales run along");
}

}  // namespace qtn
