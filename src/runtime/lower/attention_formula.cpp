// SPDX-License-Identifier: Apache-2.0
#include "runtime/lower/attention_formula.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "core/shape.hpp"
#include "graph/integer.hpp"
#include "graph/pattern.hpp"
#include "ops/common/dynamic_quantizer.hpp"

namespace qtn::runtime {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

constexpr std::size_t kMostTerms = 4;

class Finder {
 public:
  Finder(const Graph &g, const graph::Inferred &known, const std::vector<bool> &seen)
      : g_(g), known_(known), seen_(seen), uses_(g) {
    found_.inside.resize(g.nodes.size(), false);
  }

  Attentions run() && {
    for (std::size_t n = 0; n < g_.nodes.size(); ++n) find(n);
    return std::move(found_);
  }

 private:
  const Shape &shape(ValueId v) const { return known_.types[static_cast<std::size_t>(v)].shape; }

  bool holds_matrices(ValueId v) const {
    return v != kNoValue && known_.types[static_cast<std::size_t>(v)].dtype == QTN_FLOAT32 && shape(v).size() >= 2 &&
           element_count(shape(v)) > 0;
  }
  /// The same of floats that no grid rounds.
  bool is_matrix(ValueId v) const { return holds_matrices(v) && !g_.value(v).quantizer; }

  /// The index of the node that makes v where only one other reads it, and nobody sees it; -1 where not.
  std::ptrdiff_t inner(ValueId v) const {
    const Node *node = is_matrix(v) ? graph::inner_of(g_, uses_, v) : nullptr;
    return node && !seen_[static_cast<std::size_t>(v)] ? node - g_.nodes.data() : -1;
  }

  /// In one part, whose sums int32 holds.
  bool is_integer(const Node &node) const {
    return node.op == &ops::kDynamicMatMul && shape(node.inputs[0]).back() <= graph::kDynamicDepth;
  }

  /// The product of two activations, which may be rounded: constants are packed once, as weights.
  bool is_product(const Node &node) const {
    return (node.op == &ops::kMatMul || is_integer(node)) && is_matrix(node.inputs[0]) && is_matrix(node.inputs[1]) &&
           holds_matrices(node.outputs[0]) && !known_.constants[static_cast<std::size_t>(node.inputs[1])].has_data();
  }

  /// Which input of the node are scores, of a shape that the node keeps; nullopt where it is no term.
  std::optional<std::size_t> scores_of(const Node &node) const {
    const std::string_view op = node.op->name;
    const bool where = op == "Where";
    if (!where && op != "Mul" && op != "Div" && op != "Add" && op != "Sub") return std::nullopt;
    for (const std::size_t i : {where ? 1 : 0, where ? 2 : 1}) {
      const ValueId v = node.inputs[i], other = node.inputs[where ? 3 - i : 1 - i];
      const bool divides = i == 1 && (op == "Div" || op == "Sub");
      if (divides || inner(v) < 0 || shape(v) != shape(node.outputs[0])) continue;
      if (known_.types[static_cast<std::size_t>(other)].dtype == QTN_FLOAT32 && !g_.value(other).quantizer) return i;
    }
    return std::nullopt;
  }

  Shape stack_of(ValueId v) const { return Shape(std::span(shape(v)).first(shape(v).size() - 2)); }

  /// Whether the node gives the same matrices in the same order.
  bool restacks(const Node &node) const {
    if (std::string_view(node.op->name) != "Reshape" || inner(node.inputs[0]) < 0) return false;
    const std::span<const std::int64_t> from(shape(node.inputs[0])), to(shape(node.outputs[0]));
    return std::ranges::equal(from.last(2), to.last(2));
  }

  bool is_softmax(const Node &node) const {
    if (std::string_view(node.op->name) != "Softmax") return false;
    const auto rank = static_cast<std::int64_t>(shape(node.outputs[0]).size());
    const std::int64_t axis = node.attrs.get_int("axis", -1);
    return axis == -1 || axis == rank - 1;
  }

  /// Whether all that reads v is a Transpose of its two axes before the last.
  bool goes_by_query(ValueId v) const {
    const std::size_t rank = shape(v).size();
    if (rank < 3 || !uses_.single_use(v)) return false;
    const Node &reader = g_.nodes[static_cast<std::size_t>(uses_.consumers[static_cast<std::size_t>(v)][0])];
    std::vector<std::int64_t> wanted(rank);
    std::iota(wanted.begin(), wanted.end(), 0);
    std::swap(wanted[rank - 3], wanted[rank - 2]);
    return std::string_view(reader.op->name) == "Transpose" && reader.attrs.get_ints("perm", {}) == wanted;
  }

  /// The node that makes v of two matrices by putting the rows of one below those of the other; -1 where none does.
  std::ptrdiff_t rows_joined(ValueId v) const {
    const std::ptrdiff_t n = inner(v);
    if (n < 0) return -1;
    const Node &node = g_.nodes[static_cast<std::size_t>(n)];
    if (std::string_view(node.op->name) != "Concat" || node.inputs.size() != 2) return -1;
    const std::size_t rank = shape(v).size();
    const bool rows = normalize_axis(node.attrs.get_int("axis", 0), rank, "Concat") == rank - 2;
    return rows && is_matrix(node.inputs[0]) && is_matrix(node.inputs[1]) ? n : -1;
  }

  /// Keys and values that are each joined of two, at the same place, are read where they lie.
  void take_pieces(AttentionFormula &formula, std::vector<std::size_t> &inside) const {
    const std::ptrdiff_t turn = inner(formula.keys);
    if (turn < 0) return;
    const Node &turned = g_.nodes[static_cast<std::size_t>(turn)];
    const std::size_t rank = shape(formula.keys).size();
    std::vector<std::int64_t> wanted(rank);
    std::iota(wanted.begin(), wanted.end(), 0);
    std::swap(wanted[rank - 2], wanted[rank - 1]);
    if (std::string_view(turned.op->name) != "Transpose" || turned.attrs.get_ints("perm", {}) != wanted) return;
    const std::ptrdiff_t keys = rows_joined(turned.inputs[0]), values = rows_joined(formula.values);
    if (keys < 0 || values < 0) return;
    const std::vector<ValueId> &of_keys = g_.nodes[static_cast<std::size_t>(keys)].inputs,
                               &of_values = g_.nodes[static_cast<std::size_t>(values)].inputs;
    if (shape(of_keys[0])[rank - 2] != shape(of_values[0])[shape(of_values[0]).size() - 2]) return;
    formula.keys = of_keys[0];
    formula.later_keys = of_keys[1];
    formula.values = of_values[0];
    formula.later_values = of_values[1];
    for (const std::ptrdiff_t n : {turn, keys, values}) inside.push_back(static_cast<std::size_t>(n));
  }

  void find(std::size_t last) {
    const Node &node = g_.nodes[last];
    if (!is_product(node)) return;
    const std::ptrdiff_t softmax = inner(node.inputs[0]);
    if (softmax < 0 || !is_softmax(g_.nodes[static_cast<std::size_t>(softmax)])) return;
    AttentionFormula formula;
    std::vector<std::size_t> inside{static_cast<std::size_t>(softmax)};
    ValueId scores = g_.nodes[inside[0]].inputs[0];
    bool restacked = false;
    while (formula.terms.size() <= kMostTerms) {
      const std::ptrdiff_t n = inner(scores);
      if (n < 0) return;
      const Node &before = g_.nodes[static_cast<std::size_t>(n)];
      inside.push_back(static_cast<std::size_t>(n));
      if (is_product(before)) {
        if (before.op != node.op) return;
        formula.integer = is_integer(node);
        formula.centered = before.attrs.get_int(ops::kCenteredAttr, 0) != 0;
        formula.queries = before.inputs[0];
        formula.keys = before.inputs[1];
        break;
      }
      if (restacks(before)) {
        restacked = true;
        scores = before.inputs[0];
        continue;
      }
      const std::optional<std::size_t> operand = scores_of(before);
      if (!operand) return;
      formula.terms.emplace_back(&before, *operand);
      scores = before.inputs[*operand];
    }
    if (formula.terms.size() > kMostTerms) return;
    // One matrix of scores for each of the result, in the same stack.
    if (restacked &&
        (stack_of(scores) != stack_of(node.outputs[0]) || stack_of(node.inputs[0]) != stack_of(node.outputs[0])))
      return;
    std::reverse(formula.terms.begin(), formula.terms.end());
    formula.values = node.inputs[1];
    if (!formula.integer) take_pieces(formula, inside);
    formula.by_query = goes_by_query(node.outputs[0]);
    for (const std::size_t n : inside) found_.inside[n] = true;
    found_.formulas.emplace(last, std::move(formula));
  }

  const Graph &g_;
  const graph::Inferred &known_;
  const std::vector<bool> &seen_;
  const graph::Uses uses_;
  Attentions found_;
};

}  // namespace

Attentions find_attentions(const Graph &g, const graph::Inferred &known, const std::vector<bool> &seen) {
  return Finder(g, known, seen).run();
}

}  // namespace qtn::runtime
