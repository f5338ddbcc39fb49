// SPDX-License-Identifier: Apache-2.0
// Products of floats that come to integers in the run: each row, or each block of one, on a grid of its own.
#include <algorithm>
#include <limits>

#include "ops/common/matmulnbits.hpp"
#include "runtime/lower/kinds.hpp"

namespace qtn::runtime {

using graph::kNoValue;
using graph::ValueId;

namespace {

/// What x comes to in a slot of bytes, on grids of this shape, with the step that makes it.
DynamicOperand on_own_grid(Lowering &l, SlotId real, SlotId q, const ops::OwnGrid &grid, std::ptrdiff_t inside = 0) {
  const bool by_row = grid.granularity == ops::Granularity::row;
  const Shape &shape = l.form(real).shape;
  const Shape grids{by_row ? element_count(shape) / shape.back() : 1};
  const DynamicOperand x{l.edge(real), l.edge(q), l.plain_slot(QTN_FLOAT32, grids), l.plain_slot(QTN_INT32, grids),
                         by_row,       inside};
  l.add_step(make_dynamic_quantize(l.node().op->name, x, grid.numerics, l.isa));
  return x;
}

/// Contiguous; made once for all nodes that read x.
DynamicOperand rows_on_own_grid(Lowering &l, ValueId x) {
  const ops::OwnGrid grid = ops::own_grid(l.node().op->name, l.node().attrs);
  const auto [entry, is_new] = l.own_grids.try_emplace({x, grid});
  if (is_new) entry->second = on_own_grid(l, l.real(x), l.plain_slot(QTN_UINT8, l.shape_of(x)), grid);
  return entry->second;
}

/// The node's constants, of so many output channels, in the order of `w`.
DynamicWeights dynamic_weights(Lowering &l, LinearWeights w, std::size_t channels) {
  const auto numbers = [&](std::size_t i) {
    return l.input(i) == kNoValue ? Tensor() : l.g.value(l.input(i)).constant;
  };
  DynamicWeights found;
  const auto of_channels = [&](auto values) {
    if (values.size() == 1) values.resize(channels, values[0]);
    return values;
  };
  found.integers = l.finished(std::move(w), 0, [&](LinearWeights &of) {
    of.bias.resize(channels);
    of.multiplier = of_channels(float_values(numbers(2), "scales"));
  });
  if (const Tensor bias = numbers(4); bias.has_data()) found.bias = of_channels(float_values(bias, "bias"));
  const std::int32_t moved = numbers(1).dtype() == QTN_UINT8 ? -128 : 0;
  std::vector<std::int64_t> zeros{0};
  if (const Tensor given = numbers(3); given.has_data()) zeros = int_values(given, "zero point");
  for (const std::int64_t zero : of_channels(zeros)) found.zeros.push_back(static_cast<std::int32_t>(zero) + moved);
  if (std::ranges::all_of(found.zeros, [](std::int32_t zero) { return zero == 0; })) found.zeros.clear();
  return found;
}

/// The windows of the node over x, which then has the borders that they read itself: those get a zero point that only
/// the run knows.
DynamicOperand image_on_own_grid(Lowering &l, ValueId x, ops::Window &window) {
  const ops::OwnGrid grid = ops::own_grid(l.node().op->name, l.node().attrs);
  for (std::size_t axis = 0; axis < window.in.size(); ++axis) window.pad_end[axis] = read_padding(window, axis);
  const Shape &shape = l.shape_of(x);
  const Shape begin = image_shape(shape, 0, window.pad_begin);
  const auto [entry, is_new] = l.own_image_grids.try_emplace({x, grid, {window.pad_begin, window.pad_end}});
  for (std::size_t axis = 0; axis < window.in.size(); ++axis)
    window.in[axis] += window.pad_begin[axis] + window.pad_end[axis];
  window.pad_begin = window.pad_end = {};
  if (!is_new) return entry->second;
  const Shape with_borders = image_shape(shape, shape[1], window.in), strides = channels_last_strides(with_borders);
  std::ptrdiff_t inside = 0;
  for (std::size_t axis = 2; axis < shape.size(); ++axis) inside += begin[axis] * strides[axis];
  const SlotId q = l.add_slot({QTN_UINT8, with_borders, strides, nullptr});
  return entry->second = on_own_grid(l, l.real_image(x), q, grid, inside);
}

bool lower_dynamic_convolution(Lowering &l) {
  const Shape &shape = l.shape_of(l.output());
  const Tensor &weight = l.g.value(l.input(1)).constant;
  ops::Window window = over_images(ops::conv_window(l.node().attrs, l.shape_of(l.input(0)), weight.shape()));
  const auto has_negative = [](const ops::Window::Dims &pads) { return std::ranges::min(pads) < 0; };
  if (!is_ordinary(window) || element_count(l.shape_of(l.input(0))) == 0 || has_negative(window.pad_begin) ||
      has_negative(window.pad_end))
    return false;
  const auto groups = static_cast<std::size_t>(l.node().attrs.get_int("group", 1));
  const DynamicWeights w =
      dynamic_weights(l, linear_weights(weight.to_contiguous(), 0, groups), static_cast<std::size_t>(weight.dim(0)));
  DynamicOperand x = image_on_own_grid(l, l.input(0), window);
  const SlotId to = l.real_slot(shape, channels_last_strides(shape));
  Edge y = l.edge(to);
  lay_down(window, x.q, y);
  const LinearWeights &integers = w.integers;
  const bool depthwise = integers.out == 1 && integers.groups > 1 && weight.dim(1) == 1 && is_flat(window);
  // One node may meet images of one plane and of several, which want other packs.
  const PackCache cache = part_of(l.pack_cache(), depthwise, 2);
  if (!depthwise) {
    l.add_step(make_dynamic_conv(x, y, window, w, l.clamp(), l.isa, cache));
  } else {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const ops::Clamp clamp = w.bias.empty() ? l.clamp() : ops::Clamp{-kInfinity, kInfinity};
    auto made = make_dynamic_depthwise(x, y, window, integers, clamp, l.isa, cache);
    TailedStep &step = *made;
    l.add_step(std::move(made));
    if (!w.bias.empty()) step.append(make_real_bias_tail(l.real(l.input(4)), l.clamp()), to, ops::kAdd.name);
  }
  l.set_real(l.output(), to);
  return true;
}

/// Rows in 8 bits; made once for all nodes that read x in such blocks.
BlocksOperand in_blocks(Lowering &l, ValueId x, const kernels::BlocksForm &form) {
  const auto [entry, is_new] = l.in_blocks.try_emplace({x, form.block});
  if (is_new) {
    const std::int64_t rows = element_count(l.shape_of(x)) / static_cast<std::int64_t>(form.k);
    const auto slot = [&](qdtype dtype, std::size_t columns) {
      const Shape shape{rows, static_cast<std::int64_t>(columns)};
      return l.add_slot({dtype, shape, contiguous_strides(shape), nullptr});
    };
    entry->second = {l.real(x), slot(QTN_INT8, form.row_bytes()), slot(QTN_FLOAT32, form.blocks()),
                     slot(QTN_INT32, form.blocks()), static_cast<std::size_t>(rows)};
    l.add_step(make_block_quantize(entry->second, form, l.isa));
  }
  return entry->second;
}

}  // namespace

bool lower_dynamic_product(Lowering &l) {
  if (l.node().op == &ops::kDynamicQuantizeConv) return lower_dynamic_convolution(l);
  const ValueId x = l.input(0), y = l.output();
  const Tensor &weight = l.g.value(l.input(1)).constant;
  const LinearWeights integers = linear_weights(weight.to_contiguous(), 1, 1);
  const SlotId product = l.plain_slot(QTN_FLOAT32, l.shape_of(y));
  const auto rows = static_cast<std::size_t>(element_count(l.shape_of(y)) / weight.dim(1));
  l.add_step(make_dynamic_gemm(rows_on_own_grid(l, x), l.edge(product), rows,
                               dynamic_weights(l, integers, integers.out), l.clamp(), l.isa, l.pack_cache()));
  l.set_real(y, product);
  return true;
}

/// MatMulNBits whose activations become integers.
bool lower_blocks(Lowering &l) {
  if (l.node().op != &ops::kMatMulNBits || element_count(l.shape_of(l.input(0))) == 0) return false;
  for (std::size_t i = 1; i < l.node().inputs.size(); ++i)
    if (l.input(i) != kNoValue && !l.constant_of(l.input(i)).has_data()) return false;
  std::vector<Tensor> storage;
  const std::vector<const Tensor *> operands = l.constant_operands(storage);
  const ops::Call call{l.node().attrs, operands};
  if (!ops::multiplies_bytes(call)) return false;
  const BlocksOperand x = in_blocks(l, l.input(0), ops::nbits_form(call));
  const Shape &shape = l.shape_of(l.output());
  const SlotId y = l.real_slot(shape, contiguous_strides(shape));
  l.add_step(make_block_product(x, l.edge(y), call, l.clamp(), l.isa, l.pack_cache()));
  l.set_real(l.output(), y);
  return true;
}

}  // namespace qtn::runtime
