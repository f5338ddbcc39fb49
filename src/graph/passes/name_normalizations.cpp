// SPDX-License-Identifier: Apache-2.0
// Before opset 17 files had no LayerNormalization, and before 23 no RMSNormalization: exporters wrote what they compute,
// eight nodes of which each is a pass over memory.
#include <algorithm>
#include <array>
#include <string_view>

#include "graph/facts.hpp"
#include "graph/passes/passes.hpp"
#include "graph/pattern.hpp"

namespace qtn::graph {
namespace {

class Normalizations {
 public:
  Normalizations(Graph &g, const NodeFilter &only) : g_(g), facts_(g), pattern_(g, facts_, only) {}

  /// From the end, so that an addition of offsets is seen before the product that it follows.
  void run() {
    for (auto node = g_.nodes.rbegin(); node != g_.nodes.rend(); ++node)
      if (pattern_.holds(*node)) name(*node);
    remove_dead(g_);
  }

 private:
  static std::string_view op_of(const Node &node) { return node.op->name; }

  const Node *maker(ValueId v, std::string_view op) const { return pattern_.maker(v, op); }
  const Node *inner(ValueId v, std::string_view op) const { return pattern_.inner(v, op); }

  /// What it meets has a last axis.
  std::optional<double> number(ValueId v) const { return number_of(g_, v, 1); }

  /// A list of numbers, one for each element of a row.
  const Tensor *row(ValueId v) const {
    const Tensor *t = float_constant(g_, v);
    return t && t->rank() == 1 && t->count() > 1 ? t : nullptr;
  }

  /// The length of the last axis of v. Where shapes of inputs are open, it may still be known from weights and offsets on
  /// the way to it. -1: it is not known.
  std::int64_t last_dim(ValueId v, int depth = 0) const {
    constexpr int kMostNodes = 6;
    if (v == kNoValue) return -1;
    const Value &value = g_.value(v);
    const auto last = [](const Shape &shape) { return shape.empty() ? -1 : shape.back(); };
    if (value.is_constant()) return last(value.constant.shape());
    if (value.shape && last(*value.shape) > 0) return last(*value.shape);
    const auto &type = facts_.types[static_cast<std::size_t>(v)];
    if (type && !facts_.open) return last(type->shape);
    const Node *made = maker_of(g_, facts_.uses, v);
    if (!made || depth == kMostNodes) return -1;
    const Node &node = *made;
    const std::string_view op = op_of(node);
    const auto of = [&](std::size_t i) { return last_dim(input_of(node, i), depth + 1); };
    if (op == "MatMul" || node.op == &ops::kDynamicQuantizeMatMul) {
      const Value &weight = g_.value(node.inputs[1]);
      return weight.is_constant() && weight.constant.rank() >= 2 ? last(weight.constant.shape()) : -1;
    }
    // One operand may be broadcast: the longer one says.
    if (op == "Add" || op == "Sub" || op == "Mul" || op == "Div") {
      const std::int64_t most = std::max(of(0), of(1));
      return most > 1 ? most : -1;
    }
    if (op == "LayerNormalization" || op == "RMSNormalization") return std::max<std::int64_t>(of(1), of(0));
    if (op == "Concat") {
      const std::int64_t axis = node.attrs.get_int("axis", 0), rank = facts_.rank_of(v);
      return axis != -1 && rank > 0 && axis != rank - 1 ? of(0) : -1;
    }
    if (op == "Reshape") {
      const Value &shape = g_.value(input_of(node, 1));
      if (!shape.is_constant() || shape.constant.count() == 0) return -1;
      const std::int64_t length = int_values(shape.constant, "shape").back();
      return length > 0 ? length : -1;
    }
    if (op == "Gather")
      return node.attrs.get_int("axis", 0) == 0 && g_.value(node.inputs[0]).is_constant() &&
                     g_.value(node.inputs[0]).constant.rank() == 2
                 ? of(0)
                 : -1;
    return op == "Relu" || op == "Gelu" || op == "Swish" || op == "Tanh" || op == "Sigmoid" ? of(0) : -1;
  }

  /// v = mean of u over the last axis, which stays with length 1
  ValueId mean_of(ValueId v) const {
    if (const Node *pool = maker(v, "GlobalAveragePool"))
      return facts_.rank_of(pool->inputs[0]) == 3 ? pool->inputs[0] : kNoValue;
    const Node *mean = maker(v, "ReduceMean");
    if (!mean || mean->attrs.get_int("keepdims", 1) == 0) return kNoValue;
    const ValueId axes = input_of(*mean, 1);
    if (axes == kNoValue || !g_.value(axes).is_constant() || g_.value(axes).constant.count() != 1) return kNoValue;
    const std::int64_t axis = int_values(g_.value(axes).constant, "axes")[0], rank = facts_.rank_of(mean->inputs[0]);
    return axis == -1 || (rank > 0 && axis == rank - 1) ? mean->inputs[0] : kNoValue;
  }

  /// v = u^2
  bool is_square(ValueId v, ValueId &u) const {
    if (const Node *mul = maker(v, "Mul")) {
      u = mul->inputs[0];
      return u == mul->inputs[1];
    }
    const Node *pow = maker(v, "Pow");
    if (!pow || number(pow->inputs[1]) != 2.0) return false;
    u = pow->inputs[0];
    return true;
  }

  struct Spread {
    ValueId of = kNoValue;
    double epsilon = 0;
  };
  /// v = mean of of^2 + epsilon
  std::optional<Spread> spread_of(ValueId v) const {
    const Node *add = maker(v, "Add");
    if (!add) return std::nullopt;
    for (const std::size_t i : {0, 1}) {
      Spread spread;
      const auto epsilon = number(add->inputs[i]);
      if (!epsilon || !is_square(mean_of(add->inputs[1 - i]), spread.of)) continue;
      spread.epsilon = *epsilon;
      return spread;
    }
    return std::nullopt;
  }

  std::optional<Spread> under_root(ValueId root) const {
    const Node *sqrt = maker(root, "Sqrt");
    return sqrt ? spread_of(sqrt->inputs[0]) : std::nullopt;
  }

  /// v = 1 / sqrt(mean of of^2 + epsilon)
  std::optional<Spread> inverse_root(ValueId v) const {
    if (const Node *reciprocal = maker(v, "Reciprocal")) return under_root(reciprocal->inputs[0]);
    if (const Node *div = maker(v, "Div"))
      return number(div->inputs[0]) == 1.0 ? under_root(div->inputs[1]) : std::nullopt;
    const Node *pow = maker(v, "Pow");
    return pow && number(pow->inputs[1]) == -0.5 ? spread_of(pow->inputs[0]) : std::nullopt;
  }

  struct Quotient {
    ValueId over;
    Spread spread;
  };
  /// v = over / sqrt(mean of of^2 + epsilon)
  std::optional<Quotient> quotient_of(ValueId v) const {
    if (const Node *div = inner(v, "Div"))
      if (const auto spread = under_root(div->inputs[1])) return Quotient{div->inputs[0], *spread};
    if (const Node *mul = inner(v, "Mul"))
      for (const std::size_t i : {0, 1})
        if (const auto spread = inverse_root(mul->inputs[i])) return Quotient{mul->inputs[1 - i], *spread};
    return std::nullopt;
  }

  /// v = u - mean of u
  ValueId centered_of(ValueId v) const {
    const Node *sub = maker(v, "Sub");
    return sub && mean_of(sub->inputs[1]) == sub->inputs[0] ? sub->inputs[0] : kNoValue;
  }

  /// The two operands of a product, of which one fulfils the condition: first that one. kNoValue: none does.
  template <typename Is>
  std::array<ValueId, 2> factors(const Node *product, const Is &is) const {
    for (const std::size_t i : {0, 1})
      if (product && is(product->inputs[i])) return {product->inputs[i], product->inputs[1 - i]};
    return {kNoValue, kNoValue};
  }

  /// x * f + (shift - mean of x * f) with f = scale / sqrt(variance of x + epsilon), as TensorFlow writes it
  bool name_affine(Node &node, ValueId scaled, ValueId offset) {
    ValueId shift = kNoValue;
    const Node *moved = nullptr;  // mean of x * f
    if (const Node *sub = inner(offset, "Sub")) {
      if (!row(shift = sub->inputs[0])) return false;
      moved = inner(sub->inputs[1], "Mul");
    } else if (const Node *neg = inner(offset, "Neg")) {
      moved = inner(neg->inputs[0], "Mul");
    }
    const auto [mean, f] = factors(moved, [&](ValueId v) { return mean_of(v) != kNoValue; });
    const ValueId x = mean_of(mean), factor = f;
    if (x == kNoValue || factors(inner(scaled, "Mul"), [&](ValueId v) { return v == factor; })[1] != x) return false;
    const auto [scale, inverse] = factors(maker(factor, "Mul"), [&](ValueId v) { return row(v) != nullptr; });
    const auto spread = scale == kNoValue ? std::nullopt : inverse_root(inverse);
    return spread && centered_of(spread->of) == x &&
           become(node, "LayerNormalization", x, scale, shift, spread->epsilon);
  }

  void name(Node &node) {
    const std::string_view op = op_of(node);
    if (op != "Add" && op != "Mul") return;
    if (op == "Add" &&
        (name_affine(node, node.inputs[0], node.inputs[1]) || name_affine(node, node.inputs[1], node.inputs[0])))
      return;
    for (const std::size_t i : {0, 1}) {
      const ValueId list = node.inputs[i], rest = node.inputs[1 - i];
      if (!row(list)) continue;
      if (op == "Mul") {
        if (name_scaled(node, rest, list, kNoValue)) return;
        continue;
      }
      const Node *mul = inner(rest, "Mul");
      if (!mul) continue;
      for (const std::size_t k : {0, 1})
        if (row(mul->inputs[k]) && name_scaled(node, mul->inputs[1 - k], mul->inputs[k], list)) return;
    }
  }

  bool name_scaled(Node &node, ValueId v, ValueId scale, ValueId shift) {
    const auto quotient = quotient_of(v);
    if (!quotient) return false;
    const ValueId x = centered_of(quotient->spread.of);
    const bool centers = x != kNoValue && centered_of(quotient->over) == x;
    if (!centers && (quotient->over != quotient->spread.of || shift != kNoValue)) return false;
    return become(node, centers ? "LayerNormalization" : "RMSNormalization", centers ? x : quotient->over, scale, shift,
                  quotient->spread.epsilon);
  }

  bool become(Node &node, const char *op, ValueId x, ValueId scale, ValueId shift, double epsilon) {
    const std::int64_t length = row(scale)->count();
    if ((shift != kNoValue && row(shift)->count() != length) || last_dim(x) != length) return false;
    node.op = ops::find_op(op);
    node.attrs = Attrs();
    node.attrs.set("epsilon", epsilon);
    node.inputs = {x, scale};
    if (shift != kNoValue) node.inputs.push_back(shift);
    return true;
  }

  Graph &g_;
  const Facts facts_;
  const FloatPattern pattern_;
};

}  // namespace

void name_normalizations(Graph &g) {
  name_normalizations(g, [](const Node &) { return true; });
}

void name_normalizations(Graph &g, const NodeFilter &only) {
  const auto takes_mean = [](const Node &node) {
    return std::string_view(node.op->name) == "ReduceMean" || std::string_view(node.op->name) == "GlobalAveragePool";
  };
  if (std::ranges::any_of(g.nodes, takes_mean)) Normalizations(g, only).run();
}

}  // namespace qtn::graph
