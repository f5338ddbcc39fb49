// SPDX-License-Identifier: Apache-2.0
#include "runtime/steps/recurrent.hpp"

#include <array>

#include "graph/integer.hpp"
#include "runtime/lower/kinds.hpp"

namespace qtn::runtime {

using graph::kNoValue;
using graph::ValueId;

/// Layers whose weights are constants.
bool lower_recurrent(Lowering &l) {
  const bool lstm = l.node().op == &ops::kLSTM, gru = l.node().op == &ops::kGRU;
  if ((!lstm && !gru && l.node().op != &ops::kRNN) || !l.is_real(l.input(0))) return false;
  RecurrentLayer layer;
  layer.kind = lstm ? RecurrentLayer::lstm : gru ? RecurrentLayer::gru : RecurrentLayer::rnn;
  layer.op = l.node().op->name;
  const bool integers = graph::integer_form(l.g, l.node()) == graph::IntegerForm::recurrent;
  layer.w = integers ? l.constant_of(l.input(1)) : l.real_constant(l.input(1));
  layer.r = integers ? l.constant_of(l.input(2)) : l.real_constant(l.input(2));
  layer.b = l.real_constant(l.input(3));
  layer.peepholes = l.real_constant(l.input(7));
  const auto is_computed = [&](std::size_t i, const Tensor &t) { return l.input(i) != kNoValue && !t.has_data(); };
  if (!layer.w.has_data() || !layer.r.has_data() || is_computed(3, layer.b) || is_computed(7, layer.peepholes))
    return false;
  std::vector<Tensor> storage;
  const std::vector<const Tensor *> operands = l.constant_operands(storage);
  for (Tensor &t : storage)
    if (t.quantized()) t = Tensor::meta(QTN_FLOAT32, t.shape());
  const auto prepared = l.node().op->prepare({l.node().attrs, operands, l.node().outputs.size()});
  const auto &sizes = static_cast<const ops::Recurrent &>(*prepared);
  for (const std::int64_t size : {sizes.steps, sizes.batches, sizes.features, sizes.hidden})
    if (size == 0) return false;
  layer.clamp = l.node().clamp;
  layer.coupled = l.node().attrs.get_int("input_forget", 0) != 0;
  layer.linear_before_reset = l.node().attrs.get_int("linear_before_reset", 0) != 0;
  const auto given = [&](std::size_t i) { return l.input(i) == kNoValue ? kNoSlot : l.real(l.input(i)); };
  layer.x = given(0);
  layer.lengths = given(4);
  layer.h = given(5);
  layer.c = given(6);
  const auto wanted = [&](std::size_t o) {
    if (o >= l.node().outputs.size() || l.node().outputs[o] == kNoValue) return kNoSlot;
    const Shape &shape = l.shape_of(l.node().outputs[o]);
    return l.real_slot(shape, contiguous_strides(shape));
  };
  layer.y = wanted(0);
  layer.last_h = wanted(1);
  layer.last_c = wanted(2);
  const RecurrentSizes work = recurrent_work(sizes);
  const Shape floats{work.floats}, codes{work.codes};
  layer.work = l.real_slot(floats, contiguous_strides(floats));
  layer.codes = integers ? l.add_slot({QTN_UINT8, codes, contiguous_strides(codes), nullptr}) : kNoSlot;
  l.add_step(make_recurrent(layer, sizes, l.isa,
                            [&](std::size_t part, std::size_t parts) { return l.pack_cache(part, parts); }));
  const std::array<SlotId, 3> made{layer.y, layer.last_h, layer.last_c};
  for (std::size_t o = 0; o < made.size(); ++o)
    if (made[o] != kNoSlot) l.set_real(l.node().outputs[o], made[o]);
  return true;
}

}  // namespace qtn::runtime
