// SPDX-License-Identifier: Apache-2.0
// Attention as files have it: a formula of several nodes in one step.
#include "runtime/lower/kinds.hpp"
#include "runtime/steps/attention_products.hpp"
#include "runtime/steps/divided_heads.hpp"

namespace qtn::runtime {

using graph::kNoValue;
using graph::ValueId;

namespace {

ScoreTerm::Kind kind_of(std::string_view op) {
  if (op == "Where") return ScoreTerm::where;
  if (op == "Mul") return ScoreTerm::mul;
  if (op == "Div") return ScoreTerm::div;
  return op == "Sub" ? ScoreTerm::sub : ScoreTerm::add;
}

std::vector<KeysAndValues> parts_of(Lowering &l, const AttentionFormula &formula) {
  std::vector<KeysAndValues> parts{{l.edge(l.any_real(formula.keys)), l.edge(l.any_real(formula.values))}};
  if (formula.later_keys != kNoValue)
    parts.push_back({l.edge(l.any_real(formula.later_keys)), l.edge(l.any_real(formula.later_values))});
  for (KeysAndValues &part : parts) {
    const std::size_t last = part.keys.form.shape.size() - 1;
    for (Shape *axes : {&part.keys.form.shape, &part.keys.form.strides})
      if (formula.keys_in_rows) std::swap((*axes)[last - 1], (*axes)[last]);
  }
  return parts;
}

Shape stack_of(const Shape &matrices) { return Shape(std::span(matrices).first(matrices.size() - 2)); }

/// Heads as two axes: those that are shared, and `sharing` that share one. An axis of length 1 becomes two.
SlotForm by_shared_heads(SlotForm form, std::int64_t sharing) {
  if (sharing == 1 || form.shape.size() < 3) return form;
  const std::size_t heads = form.shape.size() - 3;
  const std::int64_t inner = form.shape[heads] == 1 ? 1 : sharing, step = form.strides[heads];
  form.shape[heads] /= inner;
  form.shape.insert(heads + 1, inner);
  form.strides[heads] *= inner;
  form.strides.insert(heads + 1, step);
  return form;
}

/// The products of a formula of floats.
std::unique_ptr<AttentionProducts> real_products(const Lowering &l, const Edge &queries,
                                                 std::span<const KeysAndValues> parts) {
  const bool few = queries.form.shape[queries.form.shape.size() - 2] <= kFewQueries && l.clamp().changes_nothing();
  const auto side_by_side = [](const KeysAndValues &part) { return part.values.form.strides.back() == 1; };
  return few && std::ranges::all_of(parts, side_by_side) ? make_few_real_products(l.isa)
                                                         : make_real_products(l.clamp(), l.isa);
}

}  // namespace

/// All of a formula, of which the node under way is the last product.
void lower_attention(Lowering &l, const AttentionFormula &formula) {
  const auto edge = [&](SlotId slot) { return Edge{slot, by_shared_heads(l.form(slot), formula.sharing)}; };
  const Shape &shape = l.shape_of(l.output());
  const auto stack_in = [&](const Shape &matrices) {
    return stack_of(by_shared_heads({QTN_FLOAT32, matrices, matrices, nullptr}, formula.sharing).shape);
  };
  const Shape whole = stack_in(shape);
  std::vector<ScoreTerm> terms;
  if (formula.factor != 1)
    terms.push_back({ScoreTerm::mul, whole, true, l.edge(l.add_constant(Tensor::scalar(formula.factor)))});
  for (const auto &[node, scores] : formula.terms) {
    const ScoreTerm::Kind kind = kind_of(node->op->name);
    const bool where = kind == ScoreTerm::where;
    const Edge other = edge(l.side_by_side(node->inputs[where ? 0 : 1 - scores]));
    // Values may repeat scores, which then are those of the result.
    const Shape own = stack_in(l.shape_of(node->outputs[0]));
    terms.push_back({kind, element_count(own) == element_count(whole) ? own : whole, scores == (where ? 1 : 0), other});
    if (where) terms.back().filler = edge(l.side_by_side(node->inputs[3 - scores]));
  }
  Shape strides = contiguous_strides(shape);
  if (formula.by_query) {
    const std::size_t queries = shape.size() - 2, heads = shape.size() - 3;
    strides[heads] = shape.back();
    strides[queries] = shape.back() * shape[heads];
  }
  const SlotId y = l.real_slot(shape, strides);
  const Edge queries = edge(l.side_by_side(formula.queries));
  const std::vector<KeysAndValues> parts = parts_of(l, formula);
  l.add_step(make_attention(
      queries, parts, edge(y), std::move(terms), formula.guarded,
      formula.integer ? make_integer_products(formula.centered, l.clamp(), l.isa) : real_products(l, queries, parts),
      l.isa));
  l.set_real(l.output(), y);
}

}  // namespace qtn::runtime
