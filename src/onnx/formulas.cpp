// SPDX-License-Identifier: Apache-2.0
// Activations and normalizations that the opset of a file has no operator for, as the formulas that its standard gives
// them later.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <set>
#include <span>
#include <string_view>

#include "graph/budget.hpp"
#include "graph/facts.hpp"
#include "graph/passes/affine.hpp"
#include "graph/passes/passes.hpp"
#include "onnx/opset_forms.hpp"
#include "ops/common/epsilon.hpp"

namespace qtn::onnx {

using graph::Node;
using graph::ValueId;

namespace {

/// The formula of one node under construction: each method adds a node and returns its result. Narrow floats go through it
/// as float32 and are rounded at its end alone, as the operator does.
class Formula {
 public:
  Formula(graph::Graph &g, const Node &node, qdtype dtype, std::vector<Node> &nodes)
      : g_(g), node_(node), narrow_(dtype), dtype_(is_narrow_float(dtype) ? QTN_FLOAT32 : dtype), nodes_(nodes) {
    if (narrow_ != dtype_) x_ = make("Cast", {x_}, to(dtype_));
  }

  ValueId x() const { return x_; }
  ValueId input(std::size_t i) const { return graph::input_of(node_, i); }
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
  /// Over the last axis.
  ValueId mean(ValueId a) {
    return make("ReduceMean", {a, g_.add_constant(next("axes"), Tensor::from_ints(std::vector<std::int64_t>{-1}))});
  }

  /// The end: what the node is.
  void end(const char *op, std::vector<ValueId> inputs) {
    const bool rounds = narrow_ != dtype_;
    if (rounds) inputs = {make(op, std::move(inputs))};
    Node last = node_;
    last.op = ops::find_op(rounds ? "Cast" : op);
    last.attrs = rounds ? to(narrow_) : Attrs();
    last.inputs = std::move(inputs);
    nodes_.push_back(std::move(last));
  }
  void product(ValueId a, ValueId b) { end("Mul", {a, b}); }

 private:
  static Attrs to(qdtype dtype) {
    Attrs attrs;
    attrs.set("to", std::int64_t{dtype});
    return attrs;
  }
  std::string next(const std::string &what) { return node_.name + "_" + what + std::to_string(count_++); }

  graph::Graph &g_;
  const Node &node_;
  const qdtype narrow_, dtype_;  ///< of the node, and of the formula
  ValueId x_ = node_.inputs[0];
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

/// x / sqrt(mean of x^2 + epsilon)
ValueId over_root(Formula &f, ValueId x, const Attrs &attrs) {
  const ValueId squares = f.mean(f.make("Mul", {x, x}));
  return f.make("Div", {x, f.make("Sqrt", {f.plus(squares, attrs.get_float("epsilon", ops::kDefaultEpsilon))})});
}

void layer_normalization(Formula &f, const Attrs &attrs) {
  const ValueId y = over_root(f, f.make("Sub", {f.x(), f.mean(f.x())}), attrs);
  if (f.input(2) == graph::kNoValue) return f.product(y, f.input(1));
  f.end("Add", {f.make("Mul", {y, f.input(1)}), f.input(2)});
}

void rms_normalization(Formula &f, const Attrs &attrs) { f.product(over_root(f, f.x(), attrs), f.input(1)); }

struct Missing {
  const char *op;
  int since;
  void (*write)(Formula &, const Attrs &);
};
constexpr Missing kActivations[] = {
    {"Gelu", 20, gelu}, {"HardSwish", 14, hard_swish}, {"Mish", 18, mish}, {"Swish", 24, swish}};
constexpr Missing kNormalizations[] = {{"LayerNormalization", 17, layer_normalization},
                                       {"RMSNormalization", 23, rms_normalization}};

/// The row of the table for an operator that `opset` does not have.
const Missing *missing(std::span<const Missing> table, const Node &node, int opset) {
  for (const Missing &row : table)
    if (opset < row.since && std::string_view(node.op->name) == row.op) return &row;
  return nullptr;
}

/// Where all operands are constants, readers would fold the formula, with a rounding for each of its operators: y is
/// written as what the operator makes of them.
bool write_out_result(graph::Graph &g, Node &node, graph::FoldBudget &budget) {
  std::vector<const Tensor *> operands;
  for (const ValueId v : node.inputs) {
    if (v != graph::kNoValue && !graph::plain_constant(g, v)) return false;
    operands.push_back(v == graph::kNoValue ? nullptr : &g.value(v).constant);
  }
  if (node.outputs.size() != 1) return false;
  const ops::Call call{node.attrs, operands, 1};
  if (!budget.take(node, operands, ops::infer_op(*node.op, call))) return false;
  node.inputs = {g.add_constant(node.name + "_of_constant", ops::run_op(*node.op, call)[0])};
  node.op = ops::find_op("Identity");
  node.attrs = {};
  return true;
}

/// Those of the normalizations whose results these are.
graph::Graph with_formulas(const graph::Graph &g, int opset, const std::set<ValueId> &results) {
  graph::Graph written = g;
  written.nodes.clear();
  for (const Node &node : g.nodes)
    if (node.outputs.size() == 1 && results.contains(node.outputs[0])) {
      Formula formula(written, node, QTN_FLOAT32, written.nodes);
      missing(kNormalizations, node, opset)->write(formula, node.attrs);
    } else {
      written.nodes.push_back(node);
    }
  return written;
}

/// Which of these results a normalization makes once more where readers look for its formula.
std::set<ValueId> restored(graph::Graph written, const std::set<ValueId> &results) {
  graph::name_normalizations(written);
  std::set<ValueId> found;
  for (const Node &node : written.nodes)
    for (const Missing &row : kNormalizations)
      if (std::string_view(node.op->name) == row.op && results.contains(node.outputs[0])) found.insert(node.outputs[0]);
  return found;
}

/// Normalizations over the last axis, if readers find them in their formulas, and so compute the same bits.
void write_out_normalizations(graph::Graph &g, int opset) {
  graph::FoldBudget budget(graph::constant_bytes(g));
  for (Node &node : g.nodes)
    if (missing(kNormalizations, node, opset)) write_out_result(g, node, budget);
  const graph::Facts facts(g);
  const auto is_of_rows = [&](const Node &node) {
    const std::int64_t axis = node.attrs.get_int("axis", -1), rank = facts.rank_of(node.inputs[0]);
    return axis == -1 || (rank > 0 && axis == rank - 1);
  };
  std::set<ValueId> results;
  for (const Node &node : g.nodes)
    if (missing(kNormalizations, node, opset) && node.outputs.size() == 1 && is_of_rows(node))
      results.insert(node.outputs[0]);
  while (!results.empty()) {
    graph::Graph written = with_formulas(g, opset, results);
    std::set<ValueId> found = restored(written, results);
    if (found == results) {
      g = std::move(written);
      return;
    }
    results = std::move(found);
  }
}

void write_out_activations(graph::Graph &g, int opset) {
  const graph::Facts facts(g);
  graph::FoldBudget budget(graph::constant_bytes(g));
  std::vector<Node> nodes;
  for (Node &node : g.nodes) {
    const Missing *activation = missing(kActivations, node, opset);
    if (!activation || write_out_result(g, node, budget)) {
      nodes.push_back(std::move(node));
      continue;
    }
    Formula formula(g, node, facts.dtype[static_cast<std::size_t>(node.inputs[0])], nodes);
    activation->write(formula, node.attrs);
  }
  g.nodes = std::move(nodes);
}

}  // namespace

void write_out_formulas(graph::Graph &g, int opset) {
  if (std::ranges::none_of(g.nodes, [&](const Node &node) {
        return missing(kActivations, node, opset) || missing(kNormalizations, node, opset);
      }))
    return;
  graph::fold_constants(g);  // readers would do it with the nodes of formulas
  write_out_normalizations(g, opset);
  write_out_activations(g, opset);
}

}  // namespace qtn::onnx
