// SPDX-License-Identifier: Apache-2.0
// Convolutions and products of values on grids that they get at every run, as tools for dynamic quantization write
// them. Those that are no DynamicQuantizeMatMul or DynamicQuantizeConv sum their integers as floats.
#include <algorithm>
#include <map>
#include <set>

#include "graph/facts.hpp"
#include "graph/passes/passes.hpp"
#include "graph/tensors.hpp"

namespace qtn::graph {
namespace {

class IntegerSums {
 public:
  explicit IntegerSums(Graph &g) : g_(g), uses_(g) {}

  void run() {
    const std::vector<Node> nodes = std::move(g_.nodes);
    g_.nodes.clear();
    for (const Node &node : nodes) {
      const std::int32_t n = static_cast<std::int32_t>(&node - nodes.data());
      if (gone_.contains(n) || rewrite(nodes, node)) continue;
      if (const auto sum = sums_.find(n); sum != sums_.end())
        add_bias(node, sum->second);
      else
        g_.nodes.push_back(node);
    }
    remove_dead(g_);
  }

 private:
  /// The sums become floats at once, or after a bias in integers was added.
  bool rewrite(const std::vector<Node> &nodes, const Node &node) {
    if ((node.op != &ops::kConvInteger && node.op != &ops::kMatMulInteger) || node.clamp) return false;
    const std::int32_t next = reader(node.outputs[0]);
    const bool adds = next >= 0 && nodes[at(next)].op == &ops::kAdd && !nodes[at(next)].clamp;
    const std::int32_t cast = adds ? reader(nodes[at(next)].outputs[0]) : next;
    if (cast < 0 || !makes_floats(nodes[at(cast)])) return false;
    const bool product = node.op == &ops::kMatMulInteger;
    const std::optional<Tensor> weight = product ? std::nullopt : centered(node);
    if (product ? !is_one_number(nodes, input_of(node, 2)) || !is_one_number(nodes, input_of(node, 3)) : !weight)
      return false;
    const ValueId x = centered(node.inputs[0], input_of(node, 2)),
                  w = product ? centered(node.inputs[1], input_of(node, 3))
                              : g_.add_constant(original_name(g_.value(node.inputs[1])) + "_centered", *weight);
    const ValueId result = nodes[at(cast)].outputs[0],
                  y = adds ? add_float(g_.value(node.outputs[0]).name + "_real") : result;
    g_.nodes.push_back({node.name, product ? &ops::kMatMul : &ops::kConv, node.attrs, {x, w}, {y}, {}});
    gone_.insert(cast);
    if (adds) sums_[next] = {node.outputs[0], y, result};
    return true;
  }

  struct Sum {
    ValueId integers, reals, result;
  };
  void add_bias(const Node &node, const Sum &sum) {
    const ValueId bias = node.inputs[node.inputs[0] == sum.integers ? 1 : 0],
                  real = add_float(g_.value(bias).name + "_real");
    Attrs attrs;
    attrs.set("to", std::int64_t{QTN_FLOAT32});
    g_.nodes.push_back({node.name + "_bias", &ops::kCast, std::move(attrs), {bias}, {real}, {}});
    g_.nodes.push_back({node.name, &ops::kAdd, {}, {sum.reals, real}, {sum.result}, {}});
  }

  static std::size_t at(std::int32_t n) { return static_cast<std::size_t>(n); }

  /// The only node that reads v; -1: there is another number of them.
  std::int32_t reader(ValueId v) const {
    return uses_.single_use(v) ? uses_.consumers[static_cast<std::size_t>(v)][0] : -1;
  }

  bool makes_floats(const Node &node) const {
    return node.op == &ops::kCast && !node.clamp && node.attrs.get_int("to", 0) == QTN_FLOAT32 &&
           !g_.value(node.outputs[0]).quantizer;
  }

  ValueId add_float(const std::string &name) {
    Value value;
    value.name = g_.names.make(g_.values, name);
    value.dtype = QTN_FLOAT32;
    return g_.add_value(std::move(value));
  }

  /// Whether a zero point is absent, or surely not one for each row or column.
  bool is_one_number(const std::vector<Node> &nodes, ValueId zero) const {
    if (zero == kNoValue) return true;
    if (g_.value(zero).is_constant()) return g_.value(zero).constant.count() == 1;
    const std::int32_t n = uses_.producer[static_cast<std::size_t>(zero)];
    return n >= 0 && nodes[at(n)].op == &ops::kDynamicQuantizeLinear;
  }

  /// Constant weights less their zero points.
  std::optional<Tensor> centered(const Node &node) const {
    const Value &weight = g_.value(node.inputs[1]);
    const ValueId zero = input_of(node, 3);
    if (!weight.is_constant() || weight.quantizer || (zero != kNoValue && !g_.value(zero).is_constant()) ||
        weight.constant.rank() < 3 || weight.constant.count() == 0)
      return std::nullopt;
    const std::vector<std::int64_t> integers = int_values(weight.constant, "weights");
    const std::vector<std::int64_t> zeros =
        zero == kNoValue ? std::vector<std::int64_t>{0} : int_values(g_.value(zero).constant, "zero point");
    const std::size_t filter = integers.size() / static_cast<std::size_t>(weight.constant.dim(0));
    if (zeros.size() != 1 && zeros.size() * filter != integers.size()) return std::nullopt;
    Tensor centered(QTN_FLOAT32, weight.constant.shape());
    for (std::size_t i = 0; i < integers.size(); ++i)
      centered.as<float>()[i] = static_cast<float>(integers[i] - zeros[zeros.size() == 1 ? 0 : i / filter]);
    return centered;
  }

  /// The integers of x less their zero point, which are floats.
  ValueId centered(ValueId x, ValueId zero) {
    const auto [at, is_new] = centered_.try_emplace({x, zero}, kNoValue);
    if (!is_new) return at->second;
    at->second = add_float(g_.value(x).name + "_centered");
    const std::string name = g_.value(at->second).name;
    std::vector<ValueId> inputs{x, g_.add_constant(name + "_unit", Tensor::scalar(1.0f))};
    if (zero != kNoValue) inputs.push_back(zero);
    g_.nodes.push_back({name, &ops::kDequantizeLinear, {}, std::move(inputs), {at->second}, {}});
    return at->second;
  }

  Graph &g_;
  const Uses uses_;
  std::map<std::pair<ValueId, ValueId>, ValueId> centered_;
  std::map<std::int32_t, Sum> sums_;  ///< by the node that adds a bias
  std::set<std::int32_t> gone_;
};

}  // namespace

void sum_integers_in_float(Graph &g) {
  const auto sums = [](const Node &node) { return node.op == &ops::kConvInteger || node.op == &ops::kMatMulInteger; };
  if (std::ranges::any_of(g.nodes, sums)) IntegerSums(g).run();
}

}  // namespace qtn::graph
