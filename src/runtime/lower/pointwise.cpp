// SPDX-License-Identifier: Apache-2.0
// Operators whose results depend on the elements at one place: arithmetic, tables, tails of other steps.
#include <algorithm>
#include <array>
#include <map>

#include "ops/common/requantization.hpp"
#include "runtime/lower/kinds.hpp"

namespace qtn::runtime {

using graph::kNoValue;
using graph::ValueId;

namespace {

/// a op b at the end of the step that computes the later one of them.
bool lower_as_tail(Lowering &l, SlotId a, SlotId b, Binary kind) {
  const Shape &shape = l.shape_of(l.output());
  const bool swapped = l.producer(b) > l.producer(a);
  const SlotId mine = swapped ? b : a, other = swapped ? a : b;
  if (l.form(a).shape != shape || l.form(b).shape != shape || l.producer(other) >= l.producer(mine)) return false;
  auto *step = dynamic_cast<TailedStep *>(l.open_step(l.input(swapped ? 1 : 0), mine));
  const auto row = step ? step->row_of(l.form(other).shape, l.form(other).strides) : std::nullopt;
  if (!row) return false;
  const SlotId y = l.integer_output(l.output(), shape, l.form(mine).strides);
  step->append(make_binary_tail(l.form(mine), l.edge(other), *row, l.form(y), kind, swapped,
                                l.range(l.form(y).quantizer), l.isa),
               y, l.node().op->name);
  return true;
}

/// The output lies as the operand that is not broadcast.
Shape binary_strides(Lowering &l, SlotId a, SlotId b) {
  const Shape &shape = l.shape_of(l.output());
  for (const SlotId s : {a, b})
    if (l.form(s).shape == shape && is_dense(l.form(s))) return l.form(s).strides;
  return integer_strides(shape);
}

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

}  // namespace

bool lower_arithmetic(Lowering &l) {
  const std::string_view op = l.node().op->name;
  if (op != "Add" && op != "Sub" && op != "Mul") return false;
  const Binary kind = op == "Add" ? Binary::add : op == "Sub" ? Binary::sub : Binary::mul;
  const SlotId a = l.integer(l.input(0)), b = l.integer(l.input(1));
  if (lower_as_tail(l, a, b, kind)) return true;
  const SlotId y = l.integer_output(l.output(), l.shape_of(l.output()), binary_strides(l, a, b));
  l.add_step(make_binary(l.edge(a), l.edge(b), l.edge(y), kind, l.range(l.form(y).quantizer), l.isa));
  return true;
}

namespace {

/// What the nodes of a table make of each byte.
std::array<std::uint8_t, 256> entries(const Lowering &l, const graph::Table &table, const QuantizerPtr &x,
                                      const QuantizerPtr &y) {
  std::map<ValueId, Tensor> made;
  made[table.x] = ops::all_bytes(x);
  for (const std::size_t n : table.nodes) {
    const graph::Node &node = l.g.nodes[n];
    std::vector<const Tensor *> inputs;
    for (const ValueId v : node.inputs) {
      if (v != kNoValue && !made.contains(v))
        made[v] = ops::as_scalar(l.constant_of(v).quantized() ? dequantize(l.constant_of(v)) : l.constant_of(v));
      inputs.push_back(v == kNoValue ? nullptr : &made[v]);
    }
    const QuantizerPtr grids[] = {n == table.nodes.back() ? y : nullptr};
    made[node.outputs[0]] =
        ops::run_quantized_op(*node.op, {node.attrs, inputs, 1}, grids, node.clamp ? &*node.clamp : nullptr)[0];
  }
  std::array<std::uint8_t, 256> bytes;
  std::copy_n(made[l.output()].as<const std::uint8_t>(), bytes.size(), bytes.begin());
  return bytes;
}

}  // namespace

void lower_table(Lowering &l, const graph::Table &table) {
  const ValueId v = l.output();
  const SlotId x = l.dense(l.integer(table.x));
  const bool same_shape = l.shape_of(v) == l.form(x).shape;
  if (auto *step = dynamic_cast<TailedStep *>(same_shape ? l.open_step(table.x, x) : nullptr)) {
    const SlotId y = l.integer_output(v, l.shape_of(v), l.form(x).strides);
    return step->append(make_table_tail(entries(l, table, l.form(x).quantizer, l.form(y).quantizer), l.isa), y,
                        l.node().op->name);
  }
  // A scalar constant of higher rank than x gives the result more axes of length 1.
  const SlotId from = same_shape ? x : l.contiguous(x);
  const SlotId y =
      l.integer_output(v, l.shape_of(v), same_shape ? l.form(x).strides : contiguous_strides(l.shape_of(v)));
  l.add_step(
      make_table(l.edge(from), l.edge(y), entries(l, table, l.form(from).quantizer, l.form(y).quantizer), l.isa));
}

bool lower_table(Lowering &l) {
  const auto x =
      std::ranges::find_if(l.node().inputs, [&](ValueId v) { return l.is_8bit(v) && !l.g.value(v).is_constant(); });
  lower_table(l, {*x, {l.node_index()}});
  return true;
}

/// At the end of the step that computes the later operand.
bool lower_real_add(Lowering &l) {
  if (l.node().op != &ops::kAdd) return false;
  const Shape &shape = l.shape_of(l.output());
  for (const ValueId v : {l.input(0), l.input(1)})
    if (l.shape_of(v) != shape || l.constant_of(v).has_data()) return false;
  const SlotId a = l.any_real(l.input(0)), b = l.any_real(l.input(1));
  const bool swapped = l.producer(b) > l.producer(a);
  const SlotId mine = swapped ? b : a, other = swapped ? a : b;
  if (l.producer(other) >= l.producer(mine)) return false;
  auto *step = dynamic_cast<TailedStep *>(l.open_step(l.input(swapped ? 1 : 0), mine));
  if (!step) return false;
  const auto row = step->row_of(l.form(other).shape, l.form(other).strides);
  if (!row) return false;
  const SlotId y = l.real_slot(shape, l.form(mine).strides);
  step->append(make_real_add_tail(other, *row, l.clamp()), y, l.node().op->name);
  l.set_real(l.output(), y);
  return true;
}

/// A number for each column of a product, at the end of the step that computes it.
bool lower_real_bias(Lowering &l) {
  if (l.node().op != &ops::kAdd) return false;
  const Shape &shape = l.shape_of(l.output());
  for (const std::size_t i : {0, 1}) {
    const Tensor &row = l.constant_of(l.input(1 - i));
    if (!row.has_data() || row.rank() == 0 || row.count() != shape.back() || row.shape().back() != shape.back() ||
        l.shape_of(l.input(i)) != shape)
      continue;
    const SlotId rows = l.any_real(l.input(i));
    if (!is_contiguous(l.form(rows)) || l.is_dense_image(rows)) continue;
    auto *step = dynamic_cast<TailedStep *>(l.open_step(l.input(i), rows));
    if (!step) continue;
    const SlotId y = l.real_slot(shape, l.form(rows).strides);
    step->append(make_real_bias_tail(l.real(l.input(1 - i)), l.clamp()), y, l.node().op->name);
    l.set_real(l.output(), y);
    return true;
  }
  return false;
}

namespace {

std::optional<RealActivation> activation_of(const graph::Node &node) {
  using kernels::Activation;
  if (node.op == &ops::kSwish)
    return RealActivation{std::nullopt, static_cast<float>(node.attrs.get_float("alpha", 1))};
  if (node.op == &ops::kGelu) {
    const bool by_tanh = node.attrs.get_string("approximate", "none") == "tanh";
    return RealActivation{by_tanh ? Activation::gelu_by_tanh : Activation::gelu};
  }
  const std::pair<const ops::OpDef *, Activation> others[] = {
      {&ops::kErf, Activation::erf},   {&ops::kHardSwish, Activation::hard_swish}, {&ops::kMish, Activation::mish},
      {&ops::kRelu, Activation::relu}, {&ops::kSigmoid, Activation::sigmoid},      {&ops::kTanh, Activation::tanh}};
  for (const auto &[op, f] : others)
    if (node.op == op) return RealActivation{f};
  return std::nullopt;
}

}  // namespace

/// At the end of the step that computes its operand.
bool lower_real_activation(Lowering &l) {
  const std::optional<RealActivation> activation = activation_of(l.node());
  if (!activation || l.node().clamp) return false;
  const SlotId x = l.any_real(l.input(0));
  auto *step = dynamic_cast<TailedStep *>(l.open_step(l.input(0), x));
  if (!step) return false;
  const SlotId y = l.real_slot(l.shape_of(l.output()), l.form(x).strides);
  step->append(make_activation_tail(*activation, l.isa), y, l.node().op->name);
  l.set_real(l.output(), y);
  return true;
}

namespace {

/// The first result has the shape of the images, and others are numbers.
bool run_on_images(Lowering &l) {
  const Shape &shape = l.shape_of(l.output());
  const std::size_t rank = shape.size();
  if (rank < 3 || rank > 5) return false;
  bool image = false;
  for (const ValueId v : l.node().inputs) {
    if (v == kNoValue) continue;
    if (l.is_graph_input(l.any_real(v))) return false;
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

/// The same between floats and integers, on one grid for all that follows from a run.
bool lower_grid_on_images(Lowering &l) {
  const graph::Node &node = l.node();
  if (node.op == &ops::kDynamicQuantizeLinear)
    return ops::own_grid("session", node.attrs).granularity == ops::Granularity::tensor && run_on_images(l);
  return node.op == &ops::kDequantizeLinear && l.shape_of(node.inputs[1]).empty() &&
         l.g.value(l.output()).quantizer == nullptr && run_on_images(l);
}

}  // namespace qtn::runtime
