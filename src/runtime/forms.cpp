// SPDX-License-Identifier: Apache-2.0
#include "runtime/forms.hpp"

namespace qtn::runtime {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

QuantizerPtr canonical(const QuantizerPtr &q) {
  if (q->dtype() == QTN_UINT8) return q;
  return std::make_shared<Quantizer>(QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, q->scales(),
                                     std::vector<std::int64_t>{q->zero_points()[0] + 128}, q->numerics());
}

namespace {

Tensor canonical_integers(const Tensor &constant) {
  const QuantizerPtr q = canonical(constant.quantizer());
  const Tensor from = constant.to_contiguous();
  if (q == constant.quantizer()) return from;
  Tensor to(QTN_UINT8, from.shape(), q);
  const auto count = static_cast<std::size_t>(from.count());
  for (std::size_t i = 0; i < count; ++i)
    to.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(from.as<const std::int8_t>()[i] + 128);
  return to;
}

bool walks_windows(const Node &node) {
  return graph::is_convolution(node) || node.op == &ops::kMaxPool || node.op == &ops::kAveragePool ||
         node.op == &ops::kGlobalAveragePool;
}

bool comes_as_integers(const graph::Graph &g, std::size_t i, const ops::TensorType &input) {
  const QuantizerPtr &q = g.value(g.inputs[i]).quantizer;
  return graph::is_8bit_activation(q) && input.dtype == q->dtype();
}

/// What values are, whatever they come as.
std::vector<ops::TensorType> real_types(const graph::Graph &g, std::span<const ops::TensorType> inputs) {
  std::vector<ops::TensorType> types(inputs.begin(), inputs.end());
  for (std::size_t i = 0; i < types.size(); ++i)
    if (comes_as_integers(g, i, types[i])) types[i].dtype = QTN_FLOAT32;
  return types;
}

}  // namespace

Forms::Forms(const graph::Graph &g, std::span<const ops::TensorType> inputs, std::span<const Tensor> values, Isa isa,
             Weights &weights)
    : g_(g),
      isa_(isa),
      weights_(weights),
      known_(graph::infer(g, real_types(g, inputs), values)),
      real_(g.values.size(), kNoSlot),
      integer_(g.values.size(), kNoSlot),
      contiguous_real_(g.values.size(), kNoSlot),
      real_picture_(g.values.size(), kNoSlot),
      readers_(g.values.size(), 0),
      read_as_picture_(g.values.size(), false) {
  for (const Node &node : g.nodes) {
    for (const ValueId v : node.inputs)
      if (v != kNoValue) ++readers_[at(v)];
    if (walks_windows(node) && node.inputs[0] != kNoValue) read_as_picture_[at(node.inputs[0])] = true;
  }
  for (const ValueId v : g.outputs) ++readers_[at(v)];
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool integers = comes_as_integers(g, i, inputs[i]);
    const QuantizerPtr grid = integers ? g.value(g.inputs[i]).quantizer : nullptr;
    const SlotId s = add_slot({inputs[i].dtype, inputs[i].shape, contiguous_strides(inputs[i].shape), grid});
    plan_.slots.back().input = static_cast<std::int32_t>(i);
    plan_.inputs.push_back(s);
    node_ = nullptr;
    integers_ = integers_ || integers;
    if (integers)
      integer_[at(g.inputs[i])] = flipped(s, canonical(grid));
    else
      settle(g.inputs[i], s);
  }
}

SlotId Forms::add_slot(SlotForm slot_form) {
  Slot slot;
  slot.form = std::move(slot_form);
  slot.root = static_cast<SlotId>(plan_.slots.size());
  plan_.slots.push_back(std::move(slot));
  return plan_.slots.back().root;
}

SlotId Forms::add_constant(const Tensor &constant) {
  const SlotId s = add_slot({constant.dtype(), constant.shape(), constant.strides(), constant.quantizer()});
  plan_.slots.back().constant = constant;
  return s;
}

SlotId Forms::add_view(SlotId of, const View &view) {
  Slot slot;
  slot.form = {form(of).dtype, view.shape, view.strides, form(of).quantizer};
  slot.root = plan_.slots[static_cast<std::size_t>(of)].root;
  slot.offset = plan_.slots[static_cast<std::size_t>(of)].offset + view.offset;
  plan_.slots.push_back(std::move(slot));
  return static_cast<SlotId>(plan_.slots.size() - 1);
}

void Forms::add_step(StepPtr step) {
  if (node_ && step->node.empty()) step->node = node_->name;
  if (step->op.empty()) step->op = node_->op->name;
  plan_.steps.push_back(std::move(step));
}

SlotId Forms::converted(SlotId from, SlotForm to, StepPtr (*make)(const Edge &, const Edge &, Isa)) {
  const SlotId s = add_slot(std::move(to));
  add_step(make(edge(from), edge(s), isa_));
  return s;
}

SlotId Forms::copied(SlotId from, const Shape &strides) {
  SlotForm to = form(from);
  to.strides = strides;
  const SlotId s = add_slot(std::move(to));
  add_step(make_copy(edge(from), edge(s)));
  return s;
}

/// The same numbers on a grid of the other signedness; itself where it is on this one.
SlotId Forms::flipped(SlotId from, const QuantizerPtr &grid) {
  if (form(from).dtype == grid->dtype()) return from;
  return converted(from, {grid->dtype(), form(from).shape, form(from).strides, grid}, make_flip);
}

SlotId Forms::outgoing(ValueId v) {
  return integers_ && is_8bit(v) ? flipped(contiguous(integer(v)), g_.value(v).quantizer) : real(v);
}

void Forms::settle(ValueId v, SlotId computed) {
  const QuantizerPtr &q = g_.value(v).quantizer;
  if (!q) {
    real_[at(v)] = computed;
  } else if (graph::is_8bit_activation(q)) {
    // Pictures look like sequences, whose last axis is that of channels: what reads them tells.
    const Shape &shape = shape_of(v);
    const bool picture = read_as_picture_[at(v)] && shape.size() >= 3 && shape.size() <= 5;
    const SlotId lying = is_gapless(form(computed)) ? computed : contiguous(computed);
    const Shape strides = picture ? channels_last_strides(shape) : form(lying).strides;
    const SlotId from = same_layout(shape, form(lying).strides, strides) ? lying : contiguous(lying);
    integer_[at(v)] = converted(from, {QTN_UINT8, shape, strides, canonical(q)}, make_quantize);
  } else {
    const SlotId s = add_slot({QTN_FLOAT32, shape_of(v), contiguous_strides(shape_of(v)), nullptr});
    add_step(make_round_trip(contiguous(computed), s, q));
    real_[at(v)] = s;
  }
}

SlotId Forms::real(ValueId v) {
  SlotId &s = contiguous_real_[at(v)];
  if (s != kNoSlot) return s;
  if (real_[at(v)] != kNoSlot) return s = contiguous(real_[at(v)]);
  const Tensor &constant = known_.constants[at(v)];
  if (constant.has_data())
    return s = add_constant(constant.quantized() ? weights_.dequantized(v, constant) : constant.to_contiguous());
  const SlotId q = dense(integer_[at(v)]);
  return s = converted(q, {QTN_FLOAT32, shape_of(v), contiguous_strides(shape_of(v)), nullptr}, make_dequantize);
}

SlotId Forms::any_real(ValueId v) {
  SlotId &s = real_[at(v)];
  if (s != kNoSlot) return s;
  if (contiguous_real_[at(v)] != kNoSlot || known_.constants[at(v)].has_data()) return s = real(v);
  const SlotId q = dense(integer_[at(v)]);
  return s = converted(q, {QTN_FLOAT32, shape_of(v), form(q).strides, nullptr}, make_dequantize);
}

SlotId Forms::real_picture(ValueId v) {
  SlotId &s = real_picture_[at(v)];
  if (s != kNoSlot) return s;
  const SlotId any = any_real(v);
  return s = is_dense_picture(any) ? any : copied(any, channels_last_strides(shape_of(v)));
}

SlotId Forms::integer(ValueId v) {
  SlotId &s = integer_[at(v)];
  if (s == kNoSlot) s = add_constant(canonical_integers(known_.constants[at(v)]));
  return s;
}

bool Forms::is_dense_picture(SlotId s) const {
  const auto picture = as_picture(form(s).shape, form(s).strides);
  return picture && picture->pixel == picture->c;
}

SlotId Forms::dense(SlotId s) {
  return is_contiguous(form(s)) || is_dense_picture(s) ? s : copied(s, integer_strides(form(s).shape));
}

SlotId Forms::contiguous(SlotId s) {
  const SlotForm &f = form(s);
  return is_contiguous(f) ? s : copied(s, contiguous_strides(f.shape));
}

SlotId Forms::picture(SlotId s) {
  const SlotForm &f = form(s);
  return as_picture(f.shape, f.strides) ? s : copied(s, channels_last_strides(f.shape));
}

SlotId Forms::integer_output(ValueId v, const Shape &shape, const Shape &strides) {
  return integer_[at(v)] = add_slot({QTN_UINT8, shape, strides, canonical(g_.value(v).quantizer)});
}

std::ptrdiff_t Forms::producer(SlotId s) const {
  const SlotId root = plan_.slots[static_cast<std::size_t>(s)].root;
  for (std::size_t i = plan_.steps.size(); i-- > 0;)
    for (const SlotId written : plan_.steps[i]->writes)
      if (plan_.slots[static_cast<std::size_t>(written)].root == root) return static_cast<std::ptrdiff_t>(i);
  return -1;
}

Step *Forms::open_step(ValueId v, SlotId s) const {
  if (readers_[at(v)] != 1) return nullptr;
  const bool rows = form(s).dtype == QTN_FLOAT32 && is_contiguous(form(s));
  const std::ptrdiff_t i = producer(s);
  if (i < 0 || !(form(s).dtype == QTN_UINT8 || form(s).dtype == QTN_FLOAT32) || !(rows || is_dense_picture(s)))
    return nullptr;
  Step *step = plan_.steps[static_cast<std::size_t>(i)].get();
  if (step->writes[0] != s) return nullptr;
  // A watch, or a copy of other strides, has read it.
  const SlotId root = plan_.slots[static_cast<std::size_t>(s)].root;
  for (std::size_t later = static_cast<std::size_t>(i) + 1; later < plan_.steps.size(); ++later)
    for (const SlotId read : plan_.steps[later]->reads)
      if (plan_.slots[static_cast<std::size_t>(read)].root == root) return nullptr;
  return step;
}

}  // namespace qtn::runtime
