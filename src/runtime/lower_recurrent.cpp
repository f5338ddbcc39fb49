// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "runtime/lower_real.hpp"
#include "runtime/steps/recurrent.hpp"

namespace qtn::runtime {

using graph::kNoValue;
using graph::ValueId;

/// Layers whose weights are constants.
bool RealLowering::lower_real_recurrent() {
  const bool lstm = node_->op == &ops::kLSTM, gru = node_->op == &ops::kGRU;
  if ((!lstm && !gru && node_->op != &ops::kRNN) || node_->clamp || !is_real(input(0))) return false;
  RecurrentLayer layer;
  layer.kind = lstm ? RecurrentLayer::lstm : gru ? RecurrentLayer::gru : RecurrentLayer::rnn;
  layer.op = node_->op->name;
  const bool integers = graph::integer_form(g_, *node_) == graph::IntegerForm::recurrent;
  layer.w = integers ? known_.constants[at(input(1))] : real_constant(input(1));
  layer.r = integers ? known_.constants[at(input(2))] : real_constant(input(2));
  layer.b = real_constant(input(3));
  layer.peepholes = real_constant(input(7));
  const auto is_computed = [&](std::size_t i, const Tensor &t) { return input(i) != kNoValue && !t.has_data(); };
  if (!layer.w.has_data() || !layer.r.has_data() || is_computed(3, layer.b) || is_computed(7, layer.peepholes))
    return false;
  std::vector<Tensor> storage;
  const std::vector<const Tensor *> operands = constant_operands(storage);
  for (Tensor &t : storage)
    if (t.quantized()) t = Tensor::meta(QTN_FLOAT32, t.shape());
  using Names = std::vector<std::string>;
  const Names usual = lstm ? Names{"Sigmoid", "Tanh", "Tanh"} : gru ? Names{"Sigmoid", "Tanh"} : Names{"Tanh"};
  const std::int64_t gates = lstm ? 4 : gru ? 3 : 1;
  const ops::Recurrent sizes(node_->op->name, {node_->attrs, operands, node_->outputs.size()}, gates, usual);
  for (const std::int64_t size : {sizes.steps, sizes.batches, sizes.features, sizes.hidden})
    if (size == 0) return false;
  layer.coupled = node_->attrs.get_int("input_forget", 0) != 0;
  layer.linear_before_reset = node_->attrs.get_int("linear_before_reset", 0) != 0;
  const auto given = [&](std::size_t i) { return input(i) == kNoValue ? kNoSlot : real(input(i)); };
  layer.x = given(0);
  layer.lengths = given(4);
  layer.h = given(5);
  layer.c = given(6);
  const auto wanted = [&](std::size_t o) {
    if (o >= node_->outputs.size() || node_->outputs[o] == kNoValue) return kNoSlot;
    const Shape &shape = shape_of(node_->outputs[o]);
    return real_slot(shape, contiguous_strides(shape));
  };
  layer.y = wanted(0);
  layer.last_h = wanted(1);
  layer.last_c = wanted(2);
  const RecurrentSizes work = recurrent_work(sizes);
  const Shape floats{work.floats}, codes{work.codes};
  layer.work = real_slot(floats, contiguous_strides(floats));
  layer.codes = integers ? add_slot({QTN_UINT8, codes, contiguous_strides(codes), nullptr}) : kNoSlot;
  add_step(
      make_recurrent(layer, sizes, isa_, [&](std::size_t part, std::size_t parts) { return pack_cache(part, parts); }));
  const std::array<SlotId, 3> made{layer.y, layer.last_h, layer.last_c};
  for (std::size_t o = 0; o < made.size(); ++o)
    if (made[o] != kNoSlot) settle(node_->outputs[o], made[o]);
  return true;
}

}  // namespace qtn::runtime
