// SPDX-License-Identifier: Apache-2.0
// From graph to plan: binds each node to a kernel, in integers wherever its values hold them.
#include <algorithm>
#include <set>

#include "graph/integer.hpp"
#include "runtime/lower/kinds.hpp"

namespace qtn::runtime {
namespace {

using graph::IntegerForm;
using graph::kNoValue;
using graph::ValueId;

using Kind = bool (*)(Lowering &);

// The first that takes a node lowers it.
constexpr Kind kOfAnyType[] = {lower_embedding, lower_scatter,        lower_real_view,       lower_recurrent,
                               lower_heads,     lower_grid_on_images, lower_truths_on_images};
constexpr Kind kOfFloats[] = {
    lower_real_convolution, lower_computed_product, lower_real_transposed, lower_real_product,
    lower_blocks,           lower_real_matmul,      lower_real_pool,       lower_real_normalization,
    lower_real_add,         lower_real_bias,        lower_real_activation, lower_real_concat,
    lower_on_images,        lower_resize_on_images, lower_moved_images};

bool lower_by(std::span<const Kind> kinds, Lowering &l) {
  return std::ranges::any_of(kinds, [&](Kind kind) { return kind(l); });
}

/// Whether an output has no elements, over which kernels do not go.
bool makes_nothing(Lowering &l) {
  return std::ranges::any_of(l.node().outputs,
                             [&](ValueId v) { return v != kNoValue && element_count(l.shape_of(v)) == 0; });
}

bool lower_integers(Lowering &l, IntegerForm form) {
  switch (form) {
    case IntegerForm::linear:
      if (makes_nothing(l)) return false;
      return graph::is_convolution(l.node()) ? lower_convolution(l) : lower_product(l);
    case IntegerForm::dynamic:
      return lower_dynamic_product(l);
    case IntegerForm::arithmetic:
      return lower_arithmetic(l) || lower_pool(l);
    case IntegerForm::table:
      return lower_table(l);
    case IntegerForm::move:
      return lower_movement(l);
    case IntegerForm::edge:
      return lower_edge(l);
    case IntegerForm::definition:
    case IntegerForm::recurrent:
    case IntegerForm::none:
      break;
  }
  return false;
}

bool lower_floats(Lowering &l) {
  if (makes_nothing(l)) return false;
  if (lower_by(kOfAnyType, l)) return true;
  return l.is_real(l.output()) && l.is_real(l.input(0)) && lower_by(kOfFloats, l);
}

/// The operator's meaning on quantized tensors.
void lower_definition(Lowering &l) {
  OperandRefs refs;
  for (const ValueId v : l.node().inputs) {
    if (v == kNoValue)
      refs.inputs.push_back(kNoSlot);
    else if (l.constant_of(v).has_data())
      refs.inputs.push_back(l.add_constant(l.constant_of(v)));
    else
      refs.inputs.push_back(l.is_8bit(v) ? l.contiguous(l.integer(v)) : l.real(v));
  }
  std::vector<QuantizerPtr> quantizers;
  for (const ValueId v : l.node().outputs) {
    quantizers.push_back(l.is_8bit(v) ? canonical(l.g.value(v).quantizer) : nullptr);
    if (v == kNoValue)
      refs.outputs.push_back(kNoSlot);
    else if (l.is_8bit(v))
      refs.outputs.push_back(l.integer_output(v, l.shape_of(v), contiguous_strides(l.shape_of(v))));
    else
      refs.outputs.push_back(l.plain_slot(l.type_of(v).dtype, l.shape_of(v)));
  }
  l.add_step(make_definition(l.node(), refs, quantizers));
  for (std::size_t o = 0; o < refs.outputs.size(); ++o)
    if (refs.outputs[o] != kNoSlot && !quantizers[o]) l.set_real(l.node().outputs[o], refs.outputs[o]);
}

/// The operator's own run on contiguous operands.
void lower_run(Lowering &l) {
  OperandRefs refs;
  for (const ValueId v : l.node().inputs) refs.inputs.push_back(v == kNoValue ? kNoSlot : l.real(v));
  for (const ValueId v : l.node().outputs)
    refs.outputs.push_back(v == kNoValue ? kNoSlot : l.plain_slot(l.type_of(v).dtype, l.shape_of(v)));
  l.add_step(make_run(l.node(), refs));
  for (std::size_t o = 0; o < refs.outputs.size(); ++o)
    if (refs.outputs[o] != kNoSlot) l.set_real(l.node().outputs[o], refs.outputs[o]);
}

/// Kernels take floats as float32, and an operator's own run makes them that of narrow ones.
bool reads_narrow(Lowering &l) {
  return !l.node().op->any_type && std::ranges::any_of(l.node().inputs, [&](ValueId v) {
    return v != kNoValue && is_narrow_float(l.type_of(v).dtype);
  });
}

void lower_node(Lowering &l) {
  const IntegerForm form = graph::integer_form(l.g, l.node());
  if (form != IntegerForm::none && form != IntegerForm::recurrent) {
    if (!lower_integers(l, form)) lower_definition(l);
    return;
  }
  if (reads_narrow(l)) return lower_run(l);
  if (lower_matmul(l)) return;
  const QuantizerPtr weights = l.input(1) == kNoValue ? nullptr : l.g.value(l.input(1)).quantizer;
  const bool weights_stay_integers =
      l.node().op->run_quantized && l.is_8bit(l.input(0)) && weights && !weights->per_block();
  if (weights_stay_integers) return lower_definition(l);
  if (!lower_floats(l)) lower_run(l);
}

/// Those of which no node is part of attention, whose formulas come first.
class FreeTables {
 public:
  FreeTables(const Lowering &l, const Attentions &attentions)
      : tables_(l.g, graph::Uses(l.g), [&](ValueId v) { return l.is_real(v); }), attentions_(attentions) {
    for (std::size_t n = 0; n < l.g.nodes.size(); ++n)
      if (const graph::Table *table = ending_at(n))
        for (const std::size_t inner : table->nodes) inside_.insert(inner);
  }

  const graph::Table *ending_at(std::size_t n) const {
    const graph::Table *table = tables_.ending_at(n);
    const auto taken = [&](std::size_t node) {
      return attentions_.inside[node] || attentions_.formulas.contains(node);
    };
    return table && std::ranges::none_of(table->nodes, taken) ? table : nullptr;
  }
  bool holds(std::size_t n) const { return inside_.contains(n); }

 private:
  const graph::Tables tables_;
  const Attentions &attentions_;
  std::set<std::size_t> inside_;
};

}  // namespace

Plan lower(const graph::Graph &g, std::span<const ops::TensorType> inputs, graph::Inferred known, Isa isa,
           Weights &weights, std::span<const ValueId> watched) {
  Lowering l(g, inputs, std::move(known), isa, weights);
  std::vector<bool> seen(g.values.size(), false);
  for (const ValueId v : watched) seen[static_cast<std::size_t>(v)] = l.type_of(v).dtype == QTN_FLOAT32;
  const auto observe = [&](const std::vector<ValueId> &values_here) {
    for (const ValueId v : values_here)
      if (v != kNoValue && seen[static_cast<std::size_t>(v)]) l.add_step(make_observe(l.any_real(v), v));
  };
  const Attentions attentions = find_attentions(g, l.known(), seen);
  const FreeTables tables(l, attentions);
  observe(g.inputs);
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    l.begin(n);
    const bool done =
        std::ranges::all_of(l.node().outputs, [&](ValueId v) { return v == kNoValue || l.constant_of(v).has_data(); });
    const auto attention = attentions.formulas.find(n);
    if (attention != attentions.formulas.end())
      lower_attention(l, attention->second);
    else if (const graph::Table *table = tables.ending_at(n); table && !done)
      lower_table(l, *table);
    else if (!done && !attentions.inside[n] && !tables.holds(n))
      lower_node(l);
    if (!attentions.inside[n]) observe(l.node().outputs);
  }
  return l.finish();
}

}  // namespace qtn::runtime
