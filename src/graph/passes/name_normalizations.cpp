// SPDX-License-Identifier: Apache-2.0
// Before opset 17 files had no LayerNormalization, and before 23 no RMSNormalization: exporters wrote what they compute,
// eight nodes of which each is a pass over memory.
#include <algorithm>
#include <string_view>

#include "graph/facts.hpp"
#include "graph/passes/passes.hpp"

namespace qtn::graph {
namespace {

class Normalizations {
 public:
  explicit Normalizations(Graph &g) : g_(g), facts_(g) {}

  /// From the end, so that an addition of offsets is seen before the product that it follows.
  void run() {
    for (auto node = g_.nodes.rbegin(); node != g_.nodes.rend(); ++node)
      if (node->outputs.size() == 1 && facts_.is_float(node->outputs[0])) name(*node);
    remove_dead(g_);
  }

 private:
  static std::string_view op_of(const Node &node) { return node.op->name; }

  /// The node that makes v by this operator, where no grid and no clamp come in between.
  const Node *maker(ValueId v, std::string_view op) const {
    const std::int32_t n = v == kNoValue ? -1 : facts_.uses.producer[static_cast<std::size_t>(v)];
    if (n < 0 || g_.value(v).quantizer || !facts_.is_float(v)) return nullptr;
    const Node &node = g_.nodes[static_cast<std::size_t>(n)];
    return node.outputs.size() == 1 && !node.clamp && op_of(node) == op ? &node : nullptr;
  }
  const Node *inner(ValueId v, std::string_view op) const {
    return v != kNoValue && facts_.uses.single_use(v) ? maker(v, op) : nullptr;
  }

  std::optional<double> number(ValueId v) const {
    const Tensor *t = float_constant(g_, v);
    if (!t || t->count() != 1 || t->rank() > 1) return std::nullopt;
    return static_cast<double>(*t->to_contiguous().as<const float>());
  }

  /// A list of numbers, one for each element of a row.
  const Tensor *row(ValueId v) const {
    const Tensor *t = float_constant(g_, v);
    return t && t->rank() == 1 && t->count() > 1 ? t : nullptr;
  }

  /// The length of the last axis of v where it is known without the shapes of inputs: from weights and offsets on the
  /// way to it. -1: it is not known.
  std::int64_t last_dim(ValueId v, int depth = 0) const {
    constexpr int kMostNodes = 6;
    if (v == kNoValue) return -1;
    const Value &value = g_.value(v);
    const auto last = [](const Shape &shape) { return shape.empty() ? -1 : shape.back(); };
    if (value.is_constant()) return last(value.constant.shape());
    if (value.shape && last(*value.shape) > 0) return last(*value.shape);
    const std::int32_t n = facts_.uses.producer[static_cast<std::size_t>(v)];
    if (n < 0 || depth == kMostNodes) return -1;
    const Node &node = g_.nodes[static_cast<std::size_t>(n)];
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
    if (op == "Gather")
      return node.attrs.get_int("axis", 0) == 0 && g_.value(node.inputs[0]).is_constant() &&
                     g_.value(node.inputs[0]).constant.rank() == 2
                 ? of(0)
                 : -1;
    return op == "Relu" || op == "Gelu" || op == "Swish" || op == "Tanh" || op == "Sigmoid" ? of(0) : -1;
  }

  /// v = mean of u over the last axis, which stays with length 1
  ValueId mean_of(ValueId v) const {
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

  struct Quotient {
    ValueId over;
    Spread spread;
  };
  /// v = over / sqrt(mean of of^2 + epsilon)
  std::optional<Quotient> quotient_of(ValueId v) const {
    const auto under_root = [&](ValueId root) -> std::optional<Spread> {
      const Node *sqrt = maker(root, "Sqrt");
      return sqrt ? spread_of(sqrt->inputs[0]) : std::nullopt;
    };
    const auto inverse_root = [&](ValueId u) -> std::optional<Spread> {
      if (const Node *reciprocal = maker(u, "Reciprocal")) return under_root(reciprocal->inputs[0]);
      if (const Node *div = maker(u, "Div"))
        return number(div->inputs[0]) == 1.0 ? under_root(div->inputs[1]) : std::nullopt;
      const Node *pow = maker(u, "Pow");
      return pow && number(pow->inputs[1]) == -0.5 ? spread_of(pow->inputs[0]) : std::nullopt;
    };
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

  void name(Node &node) {
    const std::string_view op = op_of(node);
    if (op != "Add" && op != "Mul") return;
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
    const ValueId from = centers ? x : quotient->over;
    const std::int64_t length = row(scale)->count();
    if ((shift != kNoValue && row(shift)->count() != length) || last_dim(from) != length) return false;
    node.op = ops::find_op(centers ? "LayerNormalization" : "RMSNormalization");
    node.attrs = Attrs();
    node.attrs.set("epsilon", quotient->spread.epsilon);
    node.inputs = {from, scale};
    if (shift != kNoValue) node.inputs.push_back(shift);
    return true;
  }

  Graph &g_;
  const Facts facts_;
};

}  // namespace

void name_normalizations(Graph &g) { Normalizations(g).run(); }

}  // namespace qtn::graph
