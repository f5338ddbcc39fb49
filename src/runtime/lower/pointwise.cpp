// SPDX-License-Identifier: Apache-2.0
// Operators whose results depend on the elements at one place: arithmetic, tables, tails of other steps.
#include <algorithm>
#include <array>
#include <map>

#include "ops/common/exponential_unit.hpp"
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
  for (const SlotId s : {a, b})
    if (l.form(s).shape == shape) return strides_as(l.form(s), shape);
  return integer_strides(shape);
}

/// An operand that is read along the innermost axis of y in steps of one element, or of none.
SlotId along(Lowering &l, SlotId operand, const SlotForm &y) {
  const SlotForm &x = l.form(operand);
  const std::size_t before = y.shape.size() - x.shape.size();
  for (std::size_t i = 0; i < x.shape.size(); ++i)
    if (x.shape[i] > 1 && y.strides[before + i] == 1 && x.strides[i] != 1)
      return l.copied(operand, dense_strides(x.shape, Shape(std::span(y.strides).subspan(before))));
  return operand;
}

}  // namespace

bool lower_arithmetic(Lowering &l) {
  const std::string_view op = l.node().op->name;
  if (op != "Add" && op != "Sub" && op != "Mul") return false;
  const Binary kind = op == "Add" ? Binary::add : op == "Sub" ? Binary::sub : Binary::mul;
  const SlotId a = l.integer(l.input(0)), b = l.integer(l.input(1));
  if (lower_as_tail(l, a, b, kind)) return true;
  const SlotId y = l.integer_output(l.output(), l.shape_of(l.output()), binary_strides(l, a, b));
  const SlotForm form = l.form(y);
  l.add_step(make_binary(l.edge(along(l, a, form)), l.edge(along(l, b, form)), l.edge(y), kind, l.range(form.quantizer),
                         l.isa));
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
      const auto found = made.find(v);
      inputs.push_back(v == kNoValue ? nullptr : found != made.end() ? &found->second : &l.constant_of(v));
    }
    made[node.outputs[0]] = ops::run_on_bytes(*node.op, {node.attrs, inputs, 1}, n == table.nodes.back() ? y : nullptr,
                                              node.clamp ? &*node.clamp : nullptr);
  }
  return ops::table_of(made[l.output()]);
}

}  // namespace

void lower_table(Lowering &l, const graph::Table &table) {
  const ValueId v = l.output();
  const SlotId x = l.dense(l.integer(table.x));
  const bool same_shape = l.shape_of(v) == l.form(x).shape;
  auto *step = dynamic_cast<TailedStep *>(same_shape ? l.open_step(table.x, x) : nullptr);
  if (step && !step->has_narrow_blocks()) {
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
    if (step->add_to_rows(l.real_constant(l.input(1 - i)), l.clamp()))
      step->become(y, l.node().op->name);
    else
      step->append(make_real_bias_tail(l.real(l.input(1 - i)), l.clamp()), y, l.node().op->name);
    l.set_real(l.output(), y);
    return true;
  }
  return false;
}

namespace {

std::optional<RealActivation> activation_of(const graph::Node &node) {
  using kernels::Activation;
  if (node.op == &ops::kSwish) return kernels::Swish{static_cast<float>(node.attrs.get_float("alpha", 1))};
  if (node.op == &ops::kCelu) return ops::celu_of(node.attrs);
  if (node.op == &ops::kElu) return ops::elu_of(node.attrs);
  if (node.op == &ops::kSelu) return ops::selu_of(node.attrs);
  if (node.op == &ops::kGelu) {
    const bool by_tanh = node.attrs.get_string("approximate", "none") == "tanh";
    return by_tanh ? Activation::gelu_by_tanh : Activation::gelu;
  }
  const std::pair<const ops::OpDef *, Activation> others[] = {
      {&ops::kErf, Activation::erf},         {&ops::kHardSwish, Activation::hard_swish},
      {&ops::kMish, Activation::mish},       {&ops::kRelu, Activation::relu},
      {&ops::kSigmoid, Activation::sigmoid}, {&ops::kSoftplus, Activation::softplus},
      {&ops::kTanh, Activation::tanh}};
  for (const auto &[op, f] : others)
    if (node.op == op) return f;
  return std::nullopt;
}

/// Slopes below zero of the columns of the blocks in which x is made, or of all as one; without data: there are others.
Tensor slopes_of(Lowering &l, SlotId x, const TailedStep &step) {
  if (l.node().op == &ops::kLeakyRelu)
    return Tensor::scalar(static_cast<float>(l.node().attrs.get_float("alpha", 0.01)));
  const Tensor slopes = l.node().op == &ops::kPRelu ? l.real_constant(l.input(1)) : Tensor();
  if (!slopes.has_data() || slopes.count() == 1) return slopes;
  const std::size_t rank = l.form(x).shape.size(), columns = step.makes_matrices() ? rank - 1 : 1;
  if (!step.makes_matrices() && !l.is_dense_image(x)) return Tensor();
  const std::size_t axis = columns + slopes.rank() - rank;  // of the slopes
  const bool one_for_each = slopes.rank() <= rank && columns + slopes.rank() >= rank &&
                            slopes.dim(axis) == slopes.count() && slopes.count() == l.form(x).shape[columns];
  return one_for_each ? slopes.to_contiguous() : Tensor();
}

}  // namespace

/// At the end of the step that computes its operand.
bool lower_real_activation(Lowering &l) {
  if (l.node().clamp) return false;
  const std::optional<RealActivation> activation = activation_of(l.node());
  const SlotId x = l.any_real(l.input(0));
  auto *step = dynamic_cast<TailedStep *>(l.open_step(l.input(0), x));
  if (!step || step->has_narrow_blocks()) return false;
  const Tensor slopes = activation ? Tensor() : slopes_of(l, x, *step);
  if (!activation && !slopes.has_data()) return false;
  const SlotId y = l.real_slot(l.shape_of(l.output()), l.form(x).strides);
  step->append(activation ? make_activation_tail(*activation, l.isa) : make_leaky_tail(slopes, l.isa), y,
               l.node().op->name);
  l.set_real(l.output(), y);
  return true;
}

}  // namespace qtn::runtime
