// SPDX-License-Identifier: Apache-2.0
#include "runtime/lower/attention_formula.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

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
constexpr float kMostFactor = 0x1p40F;  ///< products with others, or with small ones, may leave the range of floats

class Finder {
 public:
  Finder(const Graph &g, const graph::Inferred &known, const std::vector<bool> &seen)
      : g_(g), known_(known), seen_(seen), uses_(g), readers_(g.values.size(), 0) {
    found_.inside.resize(g.nodes.size(), false);
    for (const Node &node : g.nodes)
      if (!std::ranges::all_of(node.outputs, [&](ValueId v) { return v == kNoValue || is_known(v); }))
        for (const ValueId v : node.inputs)
          if (v != kNoValue) ++readers_[at(v)];
  }

  Attentions run() && {
    for (const Node &node : g_.nodes) find(node);
    return std::move(found_);
  }

 private:
  using Nodes = std::vector<const Node *>;

  static std::size_t at(ValueId v) { return static_cast<std::size_t>(v); }
  std::size_t index_of(const Node &node) const { return static_cast<std::size_t>(&node - g_.nodes.data()); }

  const Shape &shape(ValueId v) const { return known_.types[at(v)].shape; }
  qdtype dtype(ValueId v) const { return known_.types[at(v)].dtype; }
  bool is_known(ValueId v) const { return known_.constants[at(v)].has_data(); }

  /// Whether so many nodes read v in a run, and nobody sees it.
  bool is_inside(ValueId v, std::size_t readers) const {
    return readers_[at(v)] == readers && !uses_.is_output[at(v)] && !seen_[at(v)];
  }

  bool holds_matrices(ValueId v) const {
    return v != kNoValue && dtype(v) == QTN_FLOAT32 && shape(v).size() >= 2 && element_count(shape(v)) > 0;
  }
  /// The same of floats that no grid rounds.
  bool is_matrix(ValueId v) const { return holds_matrices(v) && !g_.value(v).quantizer; }

  /// The node that makes v where only one other reads it, and nobody sees it; nullptr where not.
  const Node *inner(ValueId v) const {
    const Node *node = is_matrix(v) && is_inside(v, 1) ? graph::exact_maker_of(g_, uses_, v) : nullptr;
    return node && node->outputs.size() == 1 ? node : nullptr;
  }
  /// The same where it is of this operator.
  const Node *inner(ValueId v, const ops::OpDef &op) const {
    const Node *node = inner(v);
    return node && node->op == &op ? node : nullptr;
  }

  /// A float that is known before the run, or NaN.
  float number(ValueId v) const {
    const Tensor &t = known_.constants[at(v)];
    const bool is_one = t.has_data() && t.dtype() == QTN_FLOAT32 && !t.quantized() && t.count() == 1;
    return is_one ? *t.to_contiguous().as<const float>() : std::numeric_limits<float>::quiet_NaN();
  }

  /// In one part, whose sums int32 holds.
  bool is_integer(const Node &node) const {
    return node.op == &ops::kDynamicMatMul && shape(node.inputs[0]).back() <= graph::kDynamicDepth;
  }

  /// The product of two activations, which may be rounded: constants are packed once, as weights.
  bool is_product(const Node &node) const {
    return (node.op == &ops::kMatMul || is_integer(node)) && is_matrix(node.inputs[0]) && is_matrix(node.inputs[1]) &&
           holds_matrices(node.outputs[0]) && !is_known(node.inputs[1]);
  }

  /// Which input of the node are scores, of a shape that the node keeps; nullopt where it is no term.
  std::optional<std::size_t> scores_of(const Node &node) const {
    const std::string_view op = node.op->name;
    const bool where = op == "Where";
    if (!where && op != "Mul" && op != "Div" && op != "Add" && op != "Sub") return std::nullopt;
    for (const std::size_t i : {where ? 1 : 0, where ? 2 : 1}) {
      const ValueId v = node.inputs[i], other = node.inputs[where ? 3 - i : 1 - i];
      const bool divides = i == 1 && (op == "Div" || op == "Sub");
      if (divides || !inner(v) || shape(v) != shape(node.outputs[0])) continue;
      if (dtype(other) == QTN_FLOAT32 && !g_.value(other).quantizer) return i;
    }
    return std::nullopt;
  }

  Shape stack_of(ValueId v) const { return Shape(std::span(shape(v)).first(shape(v).size() - 2)); }

  /// Whether the node gives the same matrices in the same order.
  bool restacks(const Node &node) const {
    if (node.op != &ops::kReshape || !inner(node.inputs[0])) return false;
    const std::span<const std::int64_t> from(shape(node.inputs[0])), to(shape(node.outputs[0]));
    return std::ranges::equal(from.last(2), to.last(2));
  }

  bool is_softmax(const Node &node) const {
    if (node.op != &ops::kSoftmax) return false;
    const auto rank = static_cast<std::int64_t>(shape(node.outputs[0]).size());
    const std::int64_t axis = node.attrs.get_int("axis", -1);
    return axis == -1 || axis == rank - 1;
  }

  /// The shares that the node has where they are numbers, and zeros elsewhere; kNoValue where it is no such guard.
  ValueId guarded(const Node &node) const {
    const Node *test = node.op == &ops::kWhere ? graph::inner_of(g_, uses_, node.inputs[0]) : nullptr;
    if (!test || test->op != &ops::kIsNaN || test->inputs[0] != node.inputs[2]) return kNoValue;
    return number(node.inputs[1]) == 0.0f && shape(node.inputs[2]) == shape(node.outputs[0]) ? node.inputs[2]
                                                                                             : kNoValue;
  }

  /// The Softmax of the shares v, and what guards them; nullptr where there is none.
  const Node *softmax_of(ValueId v, AttentionFormula &formula, Nodes &inside) const {
    const Node *node = inner(v);
    const ValueId shares = node ? guarded(*node) : kNoValue;
    if (shares != kNoValue) {
      if (!is_inside(shares, 2)) return nullptr;
      formula.guarded = true;
      for (const Node *part : {node, graph::maker_of(g_, uses_, node->inputs[0])}) inside.push_back(part);
      node = graph::exact_maker_of(g_, uses_, shares);
    }
    if (!node || !is_softmax(*node)) return nullptr;
    inside.push_back(node);
    return node;
  }

  /// Whether the node exchanges two axes, the second of which is so far from the end, and no others.
  bool exchanges(const Node &node, std::size_t from_end) const {
    const std::size_t rank = shape(node.outputs[0]).size();
    if (node.op != &ops::kTranspose || rank <= from_end) return false;
    std::vector<std::int64_t> wanted(rank);
    std::iota(wanted.begin(), wanted.end(), 0);
    std::swap(wanted[rank - from_end - 1], wanted[rank - from_end]);
    return node.attrs.get_ints("perm", {}) == wanted;
  }

  /// Whether all that reads v is a Transpose of its two axes before the last.
  bool goes_by_query(ValueId v) const {
    return uses_.single_use(v) && exchanges(g_.nodes[static_cast<std::size_t>(uses_.consumers[at(v)][0])], 2);
  }

  /// The node that makes v of two matrices by putting the rows of one below those of the other; nullptr where none does.
  const Node *rows_joined(ValueId v) const {
    const Node *node = inner(v, ops::kConcat);
    if (!node || node->inputs.size() != 2) return nullptr;
    const std::size_t rank = shape(v).size();
    const bool rows = normalize_axis(node->attrs.get_int("axis", 0), rank, "Concat") == rank - 2;
    return rows && is_matrix(node->inputs[0]) && is_matrix(node->inputs[1]) ? node : nullptr;
  }

  /// Keys and values that are each joined of two, at the same place, are read where they lie.
  void take_pieces(AttentionFormula &formula, Nodes &inside) const {
    const Node *keys = rows_joined(formula.keys), *values = rows_joined(formula.values);
    if (!formula.keys_in_rows || !keys || !values) return;
    const auto first_rows = [&](const Node &node) { return *(shape(node.inputs[0]).end() - 2); };
    if (first_rows(*keys) != first_rows(*values)) return;
    formula.keys = keys->inputs[0];
    formula.later_keys = keys->inputs[1];
    formula.values = values->inputs[0];
    formula.later_values = values->inputs[1];
    for (const Node *node : {keys, values}) inside.push_back(node);
  }

  /// Where the node multiplies or divides by a positive number, v becomes what it multiplies, and the number is taken
  /// into the factor.
  bool take_factor(const Node &node, ValueId &v, float &factor) const {
    const bool divides = node.op == &ops::kDiv;
    if (!divides && node.op != &ops::kMul) return false;
    for (const std::size_t i : {1, 0}) {
      if (divides && i == 0) break;
      const ValueId x = node.inputs[1 - i];
      const float by = number(node.inputs[i]), all = divides ? factor / by : factor * by;
      if (!(all >= 1 / kMostFactor && all <= kMostFactor) || !is_matrix(x) || shape(x) != shape(v)) continue;
      factor = all;
      v = x;
      return true;
    }
    return false;
  }

  /// Keys as they were before they were turned and multiplied; then queries as they were before they were multiplied.
  /// Those that become integers stay, since a number may change how they are rounded.
  void take_factors(AttentionFormula &formula, Nodes &inside) const {
    const auto take = [&](ValueId &v, bool &turned) {
      while (const Node *node = inner(v)) {
        if (!turned && exchanges(*node, 1) && is_matrix(node->inputs[0]))
          turned = true, v = node->inputs[0];
        else if (formula.integer || !take_factor(*node, v, formula.factor))
          return;
        inside.push_back(node);
      }
    };
    take(formula.keys, formula.keys_in_rows);
    bool in_rows = true;
    if (formula.factor != 1) take(formula.queries, in_rows);
  }

  /// Heads of which each is repeated for the queries that share it.
  struct Repeated {
    ValueId heads = kNoValue;  ///< [..., heads, 1, rows, columns]
    std::int64_t times = 0;
    const Node *joins = nullptr, *expands = nullptr;
  };
  Repeated repeated(ValueId v) const {
    const Node *joins = inner(v, ops::kReshape), *expands = joins ? inner(joins->inputs[0], ops::kExpand) : nullptr;
    if (!expands || !is_matrix(expands->inputs[0])) return {};
    Shape once = shape(joins->inputs[0]), together = once;
    const std::size_t rank = once.size();
    if (rank < 4) return {};
    const std::int64_t times = std::exchange(once[rank - 3], 1);
    together[rank - 4] *= times;
    together.erase(rank - 3);
    if (shape(expands->inputs[0]) != once || shape(v) != together) return {};
    return {expands->inputs[0], times, joins, expands};
  }

  /// Keys and values that are repeated alike are read once for all queries that share them.
  bool take_shared_heads(AttentionFormula &formula, Nodes &inside) const {
    const Repeated keys = repeated(formula.keys), values = repeated(formula.values);
    if (keys.times < 2 || keys.times != values.times) return false;  // queries have an axis more where heads are shared
    formula.keys = keys.heads;
    formula.values = values.heads;
    formula.sharing = keys.times;
    for (const Node *node : {keys.joins, keys.expands, values.joins, values.expands}) inside.push_back(node);
    return true;
  }

  void find(const Node &node) {
    if (!is_product(node)) return;
    AttentionFormula formula;
    Nodes inside;
    const Node *softmax = softmax_of(node.inputs[0], formula, inside);
    if (!softmax) return;
    ValueId scores = softmax->inputs[0];
    bool restacked = false;
    while (formula.terms.size() <= kMostTerms) {
      const Node *before = inner(scores);
      if (!before) return;
      inside.push_back(before);
      if (is_product(*before)) {
        if (before->op != node.op) return;
        formula.integer = is_integer(node);
        formula.centered = before->attrs.get_int(ops::kCenteredAttr, 0) != 0;
        formula.queries = before->inputs[0];
        formula.keys = before->inputs[1];
        break;
      }
      if (restacks(*before)) {
        restacked = true;
        scores = before->inputs[0];
        continue;
      }
      const std::optional<std::size_t> operand = scores_of(*before);
      if (!operand) return;
      formula.terms.emplace_back(before, *operand);
      scores = before->inputs[*operand];
    }
    if (formula.terms.size() > kMostTerms || (formula.integer && formula.guarded)) return;
    // One matrix of scores for each of the result, in the same stack.
    const Shape stack = stack_of(node.outputs[0]);
    if (restacked && (stack_of(scores) != stack || stack_of(node.inputs[0]) != stack)) return;
    std::reverse(formula.terms.begin(), formula.terms.end());
    formula.values = node.inputs[1];
    take_factors(formula, inside);
    const bool may_share = !restacked && shape(node.outputs[0]).size() < kMaxRank;
    if (!(may_share && take_shared_heads(formula, inside)) && !formula.integer) take_pieces(formula, inside);
    formula.by_query = goes_by_query(node.outputs[0]);
    for (const Node *part : inside) found_.inside[index_of(*part)] = true;
    found_.formulas.emplace(index_of(node), std::move(formula));
  }

  const Graph &g_;
  const graph::Inferred &known_;
  const std::vector<bool> &seen_;
  const graph::Uses uses_;
  std::vector<std::size_t> readers_;  ///< by value: nodes whose results are not known before
  Attentions found_;
};

}  // namespace

Attentions find_attentions(const Graph &g, const graph::Inferred &known, const std::vector<bool> &seen) {
  return Finder(g, known, seen).run();
}

}  // namespace qtn::runtime
