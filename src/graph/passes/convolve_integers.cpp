// SPDX-License-Identifier: Apache-2.0
// Convolutions of images on grids that they get at every run, as tools for dynamic quantization write them.
#include <algorithm>
#include <map>

#include "graph/facts.hpp"
#include "graph/passes/passes.hpp"
#include "graph/tensors.hpp"

namespace qtn::graph {
namespace {

class Convolutions {
 public:
  explicit Convolutions(Graph &g) : g_(g), uses_(g) {}

  void run() {
    std::vector<Node> nodes = std::move(g_.nodes);
    g_.nodes.clear();
    // The Cast of a convolution that was rewritten has gone into it.
    std::map<ValueId, ValueId> casts;
    for (const Node &node : nodes)
      if (node.op == &ops::kCast && !node.clamp && node.attrs.get_int("to", 0) == QTN_FLOAT32 &&
          uses_.single_use(node.inputs[0]))
        casts[node.inputs[0]] = node.outputs[0];
    std::map<ValueId, bool> gone;  // by the result of such a Cast
    for (Node &node : nodes) {
      if (node.op == &ops::kCast && gone.contains(node.outputs[0])) continue;
      const auto cast = casts.find(node.outputs.empty() ? kNoValue : node.outputs[0]);
      if (node.op == &ops::kConvInteger && cast != casts.end() && rewrite(node, cast->second))
        gone[cast->second] = true;
      else
        g_.nodes.push_back(std::move(node));
    }
    remove_dead(g_);
  }

 private:
  bool rewrite(const Node &node, ValueId result) {
    const std::optional<Tensor> weight = centered(node);
    if (!weight || node.clamp || g_.value(result).quantizer) return false;
    const ValueId x = centered(node.inputs[0], input_of(node, 2)),
                  w = g_.add_constant(original_name(g_.value(node.inputs[1])) + "_centered", *weight);
    g_.nodes.push_back({node.name, &ops::kConv, node.attrs, {x, w}, {result}, {}});
    return true;
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
    Value value;
    value.name = g_.names.make(g_.values, g_.value(x).name + "_centered");
    value.dtype = QTN_FLOAT32;
    value.shape = g_.value(x).shape;
    const std::string name = value.name;
    at->second = g_.add_value(std::move(value));
    std::vector<ValueId> inputs{x, g_.add_constant(name + "_unit", Tensor::scalar(1.0f))};
    if (zero != kNoValue) inputs.push_back(zero);
    g_.nodes.push_back({name, &ops::kDequantizeLinear, {}, std::move(inputs), {at->second}, {}});
    return at->second;
  }

  Graph &g_;
  const Uses uses_;
  std::map<std::pair<ValueId, ValueId>, ValueId> centered_;
};

}  // namespace

void convolve_integers_in_float(Graph &g) {
  if (std::ranges::any_of(g.nodes, [](const Node &node) { return node.op == &ops::kConvInteger; }))
    Convolutions(g).run();
}

}  // namespace qtn::graph
