// SPDX-License-Identifier: Apache-2.0
// Activations that the opset of a file has no operator for, as the formulas that its standard gives them later.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>

#include "graph/budget.hpp"
#include "graph/facts.hpp"
#include "graph/passes/passes.hpp"
#include "onnx/opset_forms.hpp"

namespace qtn::onnx {

using graph::Node;
using graph::ValueId;

namespace {

/// The formula of one node under construction: each method adds a node and returns its result.
class Formula {
 public:
  Formula(graph::Graph &g, const Node &node, qdtype dtype, std::vector<Node> &nodes)
      : g_(g), node_(node), dtype_(dtype), nodes_(nodes) {}

  ValueId x() const { return node_.inputs[0]; }
  ValueId make(const char *op, std::vector<ValueId> inputs, Attrs attrs = {}) {
    const std::string name = next(op);
    graph::Value value;
    value.name = name;
    value.dtype = dtype_;
    const ValueId y = g_.add_value(std::move(value));
    nodes_.push_back({name, ops::find_op(op), std::move(attrs), std::move(inputs), {y}, {}});
    return y;
  }
  ValueId number(double v) {
    const ValueId made = g_.add_constant(next("number"), Tensor::scalar(static_cast<float>(v)));
    return dtype_ == QTN_FLOAT32 ? made : make("CastLike", {made, x()});
  }
  ValueId times(ValueId a, double b) { return make("Mul", {a, number(b)}); }
  ValueId plus(ValueId a, double b) { return make("Add", {a, number(b)}); }

  /// The end: the node is a product.
  void product(ValueId a, ValueId b) {
    Node last = node_;
    last.op = ops::find_op("Mul");
    last.attrs = {};
    last.inputs = {a, b};
    nodes_.push_back(std::move(last));
  }

 private:
  std::string next(const std::string &what) { return node_.name + "_" + what + std::to_string(count_++); }

  graph::Graph &g_;
  const Node &node_;
  const qdtype dtype_;
  std::vector<Node> &nodes_;
  int count_ = 0;
};

/// x (1 + erf(x / sqrt 2)) / 2, or the same by tanh.
void gelu(Formula &f, const Attrs &attrs) {
  const ValueId x = f.x();
  ValueId gate;
  if (attrs.get_string("approximate", "none") == "tanh") {
    const ValueId cube = f.make("Mul", {f.make("Mul", {x, x}), x});
    const ValueId sum = f.make("Add", {x, f.times(cube, 0.044715)});
    gate = f.make("Tanh", {f.times(sum, std::numbers::sqrt2 * std::numbers::inv_sqrtpi)});
  } else {
    gate = f.make("Erf", {f.times(x, 1 / std::numbers::sqrt2)});
  }
  const ValueId half = f.times(x, 0.5);
  f.product(half, f.plus(gate, 1));
}

void hard_swish(Formula &f, const Attrs &) {
  Attrs line;
  line.set("alpha", 1.0 / 6);
  line.set("beta", 0.5);
  f.product(f.x(), f.make("HardSigmoid", {f.x()}, std::move(line)));
}

void mish(Formula &f, const Attrs &) { f.product(f.x(), f.make("Tanh", {f.make("Softplus", {f.x()})})); }

void swish(Formula &f, const Attrs &attrs) {
  const double alpha = attrs.get_float("alpha", 1);
  f.product(f.x(), f.make("Sigmoid", {alpha == 1 ? f.x() : f.times(f.x(), alpha)}));
}

struct Activation {
  const char *op;
  int since;
  void (*write)(Formula &, const Attrs &);
};
constexpr Activation kActivations[] = {
    {"Gelu", 20, gelu}, {"HardSwish", 14, hard_swish}, {"Mish", 18, mish}, {"Swish", 24, swish}};

const Activation *missing(const Node &node, int opset) {
  for (const Activation &activation : kActivations)
    if (opset < activation.since && std::string_view(node.op->name) == activation.op) return &activation;
  return nullptr;
}

/// Where x is constant, readers would fold the formula, with a rounding for each of its operators: y is written as what
/// the activation makes of x.
bool write_out_result(graph::Graph &g, Node &node, graph::FoldBudget &budget) {
  const graph::Value &x = g.value(node.inputs[0]);
  if (!x.is_constant() || x.quantizer) return false;
  const Tensor *operands[] = {&x.constant};
  const ops::Call call{node.attrs, operands, 1};
  if (!budget.take(node, operands, ops::infer_op(*node.op, call))) return false;
  node.inputs = {g.add_constant(node.name + "_of_constant", ops::run_op(*node.op, call)[0])};
  node.op = ops::find_op("Identity");
  node.attrs = {};
  return true;
}

}  // namespace

void write_out_activations(graph::Graph &g, int opset) {
  if (std::ranges::none_of(g.nodes, [&](const Node &node) { return missing(node, opset); })) return;
  graph::fold_constants(g);  // for write_out_result(): what it reads may follow from constants
  const graph::Facts facts(g);
  graph::FoldBudget budget(graph::constant_bytes(g));
  std::vector<Node> nodes;
  for (Node &node : g.nodes) {
    const Activation *activation = missing(node, opset);
    if (!activation || write_out_result(g, node, budget)) {
      nodes.push_back(std::move(node));
      continue;
    }
    Formula formula(g, node, facts.dtype[static_cast<std::size_t>(node.inputs[0])], nodes);
    activation->write(formula, node.attrs);
  }
  g.nodes = std::move(nodes);
}

}  // namespace qtn::onnx
