// SPDX-License-Identifier: Apache-2.0
// Exporters write activations as formulas of arithmetic. Where an operator is that formula, it computes the formula in
// one pass over memory.
#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "graph/facts.hpp"
#include "graph/passes/passes.hpp"
#include "graph/pattern.hpp"

namespace qtn::graph {
namespace {

constexpr int kMostProducts = 4;  ///< behind one another, that a formula has
constexpr double kHalfRoot = 0.7071067811865476, kTanhSlope = 0.7978845608028654, kTanhCubic = 0.044715;

/// As files have it, in float32 and with few digits at times.
bool is_about(double value, double wanted) { return std::abs(value - wanted) <= 1e-5 * wanted; }

/// A product of numbers and up to four values.
struct Factors {
  double number = 1;
  std::array<ValueId, 4> values{};
  std::size_t count = 0;
  bool too_many = false;

  void add(ValueId v) {
    if (count == values.size())
      too_many = true;
    else
      values[count++] = v;
  }
  bool is(ValueId a, ValueId b) const {
    return !too_many && count == 2 && ((values[0] == a && values[1] == b) || (values[0] == b && values[1] == a));
  }
  bool all_are(ValueId v, std::size_t times) const {
    return !too_many && count == times &&
           std::all_of(values.begin(), values.begin() + count, [v](ValueId u) { return u == v; });
  }
};

class Formulas {
 public:
  Formulas(Graph &g, const NodeFilter &only) : g_(g), facts_(g), pattern_(g, facts_, only) {}

  void run() {
    for (Node &node : g_.nodes)
      if (pattern_.holds(node)) name(node);
    remove_dead(g_);
  }

 private:
  static std::string_view op_of(const Node &node) { return node.op->name; }

  const Node *inner(ValueId v, std::string_view op, bool clamped = false) const {
    return pattern_.inner(v, op, clamped);
  }

  std::optional<double> number(ValueId v, ValueId met) const {
    return number_of(g_, v, met == kNoValue ? -1 : facts_.rank_of(met));
  }

  /// What the node multiplies, through products and quotients by numbers that only it reads.
  void take_factors(const Node &node, Factors &f, int depth = 0) const {
    const bool divides = op_of(node) == "Div";
    for (const std::size_t i : {0, 1}) {
      const ValueId v = node.inputs[i];
      if (const auto n = number(v, node.inputs[1 - i]); n && (i == 1 || !divides)) {
        f.number *= divides ? 1 / *n : *n;
        continue;
      }
      if (i == 1 && divides) return f.add(kNoValue);  // which is no factor of any formula
      const Node *before = inner(v, "Mul");
      if (!before) before = inner(v, "Div");
      if (before && depth < kMostProducts)
        take_factors(*before, f, depth + 1);
      else
        f.add(v);
    }
  }
  Factors factors(ValueId v) const {
    Factors f;
    const Node *node = inner(v, "Mul");
    if (!node) node = inner(v, "Div");
    node ? take_factors(*node, f) : f.add(v);
    return f;
  }

  /// v = a + n
  bool is_sum(ValueId v, double n, ValueId &a, bool clamped = false) const {
    const Node *add = inner(v, "Add", clamped);
    if (!add) return false;
    for (const std::size_t i : {0, 1})
      if (const auto given = number(add->inputs[i], add->inputs[1 - i]); given && *given == n) {
        a = add->inputs[1 - i];
        return true;
      }
    return false;
  }

  /// v = number * x to the power of n
  bool is_power(ValueId v, ValueId x, int n, double wanted) const {
    const Factors f = factors(v);
    if (!is_about(f.number, wanted)) return false;
    if (f.all_are(x, static_cast<std::size_t>(n))) return true;
    const auto is_pow = [&](ValueId u, double exponent) {
      const Node *pow = inner(u, "Pow");
      const auto given = pow ? number(pow->inputs[1], pow->inputs[0]) : std::nullopt;
      return given && *given == exponent && pow->inputs[0] == x;
    };
    if (f.count == 1 && is_pow(f.values[0], n)) return true;
    return n == 3 && f.count == 2 &&
           ((f.values[0] == x && is_pow(f.values[1], 2)) || (f.values[1] == x && is_pow(f.values[0], 2)));
  }

  /// v = erf(x / sqrt(2))
  bool is_erf(ValueId v, ValueId x) const {
    const Node *erf = inner(v, "Erf");
    if (!erf) return false;
    const Factors f = factors(erf->inputs[0]);
    return f.all_are(x, 1) && is_about(f.number, kHalfRoot);
  }

  /// v = tanh(sqrt(2 / pi) (x + 0.044715 x^3))
  bool is_tanh(ValueId v, ValueId x) const {
    const Node *tanh = inner(v, "Tanh");
    if (!tanh) return false;
    const Factors f = factors(tanh->inputs[0]);
    if (f.too_many || !is_about(f.number, kTanhSlope)) return false;
    if (f.count == 2) {
      const ValueId other = f.values[0] == x ? f.values[1] : f.values[0];
      ValueId square = kNoValue;
      return f.is(x, other) && is_sum(other, 1, square) && is_power(square, x, 2, kTanhCubic);
    }
    const Node *add = f.count == 1 ? inner(f.values[0], "Add") : nullptr;
    if (!add) return false;
    return (add->inputs[0] == x && is_power(add->inputs[1], x, 3, kTanhCubic)) ||
           (add->inputs[1] == x && is_power(add->inputs[0], x, 3, kTanhCubic));
  }

  /// v = min(max(x + 3, 0), 6)
  bool is_six(ValueId v, ValueId x) const {
    ValueId a = kNoValue;
    if (const Node *clip = inner(v, "Clip"); clip) {
      const auto bounds = clamp_of(g_, *clip);
      return bounds && bounds->lo == 0 && bounds->hi == 6 && is_sum(clip->inputs[0], 3, a) && a == x;
    }
    const Node *add = pattern_.maker(v, "Add", true);
    return add && add->clamp && add->clamp->lo == 0 && add->clamp->hi == 6 && is_sum(v, 3, a, true) && a == x;
  }

  /// A product of x and a gate of x.
  void name(Node &node) {
    if ((op_of(node) != "Mul" && op_of(node) != "Div") || node.inputs.size() != 2) return;
    Factors f;
    take_factors(node, f);
    if (f.too_many || f.count != 2) return;
    for (const std::size_t i : {0, 1})
      if (f.values[i] != kNoValue && facts_.is_float(f.values[i]) &&
          name_as_gated(node, f.values[i], f.values[1 - i], f.number))
        return;
  }

  bool name_as_gated(Node &node, ValueId x, ValueId gate, double number) {
    ValueId a = kNoValue;
    if (is_about(number, 0.5) && is_sum(gate, 1, a)) {
      if (is_erf(a, x)) return become(node, "Gelu", x);
      Attrs attrs;
      attrs.set("approximate", std::string("tanh"));
      return is_tanh(a, x) && become(node, "Gelu", x, attrs);
    }
    if (is_about(number, 1.0 / 6)) return is_six(gate, x) && become(node, "HardSwish", x);
    if (number != 1) return false;
    if (const Node *sigmoid = inner(gate, "Sigmoid")) {
      const Factors f = factors(sigmoid->inputs[0]);
      if (!f.all_are(x, 1)) return false;
      Attrs attrs;
      attrs.set("alpha", f.number);
      return become(node, "Swish", x, attrs);
    }
    if (const Node *hard = inner(gate, "HardSigmoid"))
      return hard->inputs[0] == x && is_about(hard->attrs.get_float("alpha", 0.2), 1.0 / 6) &&
             hard->attrs.get_float("beta", 0.5) == 0.5 && become(node, "HardSwish", x);
    if (const Node *tanh = inner(gate, "Tanh")) {
      const Node *softplus = inner(tanh->inputs[0], "Softplus");
      return softplus && softplus->inputs[0] == x && become(node, "Mish", x);
    }
    return false;
  }

  bool become(Node &node, const char *op, ValueId x, Attrs attrs = {}) {
    node.op = ops::find_op(op);
    node.attrs = std::move(attrs);
    node.inputs = {x};
    return true;
  }

  Graph &g_;
  const Facts facts_;
  const FloatPattern pattern_;
};

}  // namespace

void name_formulas(Graph &g) {
  name_formulas(g, [](const Node &) { return true; });
}

void name_formulas(Graph &g, const NodeFilter &only) {
  const auto gates = [](const Node &node) {
    constexpr std::string_view kGates[] = {"Clip", "Erf", "HardSigmoid", "Sigmoid", "Tanh"};
    return node.clamp || std::ranges::find(kGates, node.op->name) != std::end(kGates);
  };
  if (std::ranges::any_of(g.nodes, gates)) Formulas(g, only).run();
}

}  // namespace qtn::graph
