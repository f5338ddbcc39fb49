// SPDX-License-Identifier: Apache-2.0
// Operators that take scales and zero points as inputs, as the operators they are named after between DequantizeLinear
// and QuantizeLinear: QLinearConv is Conv. What moves integers about between them follows.
#include <algorithm>
#include <map>

#include "onnx/names.hpp"
#include "onnx/qdq.hpp"
#include "ops/linear_grid.hpp"
#include "ops/qlinear.hpp"

namespace qtn::onnx {
namespace {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

/// Where a kind of node has what. Of an operand, its scale and its zero point follow it.
struct Form {
  const char *name, *base;
  std::vector<std::size_t> operands;
  std::size_t y_scale;      ///< y_zero_point follows
  std::size_t bias = 0;     ///< int32, in products of the two operands; 0: none
  std::int64_t column = 0;  ///< axis of operand 1 along which scales are counted
};

const std::vector<Form> &forms() {
  static const std::vector<Form> all = {
      {"QLinearConv", "Conv", {0, 3}, 6, 8, 0},
      {"QLinearMatMul", "MatMul", {0, 3}, 6, 0, 1},
      {"QGemm", "Gemm", {0, 3}, 7, 6, 1},
      {"QLinearAdd", "Add", {0, 3}, 6},
      {"QLinearMul", "Mul", {0, 3}, 6},
      {"QLinearSigmoid", "Sigmoid", {0}, 3},
      {"QLinearLeakyRelu", "LeakyRelu", {0}, 3},
      {"QLinearAveragePool", "AveragePool", {0}, 3},
      {"QLinearGlobalAveragePool", "GlobalAveragePool", {0}, 3},
  };
  return all;
}

ValueId input(const Node &node, std::size_t i) { return i < node.inputs.size() ? node.inputs[i] : kNoValue; }

/// Scale and zero point of integers.
struct GridIds {
  ValueId scale, zero;
};

class Opener {
 public:
  explicit Opener(graph::Graph &g) : g_(g) {
    for (const graph::Value &value : g.values) names_.take(value.name);
  }

  void run() {
    std::vector<Node> nodes;
    std::swap(nodes, g_.nodes);
    for (Node &node : nodes) {
      const auto form = std::find_if(forms().begin(), forms().end(),
                                     [&](const Form &f) { return std::string_view(node.op->name) == f.name; });
      if (std::string_view(node.op->name) == "QLinearConcat" && constant_grids(node, 2, 0))
        open_concat(node);
      else if (form != forms().end() && opens(node, *form))
        open(node, *form);
      else if (moves_known(node))
        open_move(node);
      else
        keep(node);
    }
  }

 private:
  bool is_constant(ValueId v) const { return v != kNoValue && g_.value(v).is_constant(); }

  /// A grid whose scale and, if there is one, zero point are known now.
  bool known(const Node &node, std::size_t scale) const {
    const ValueId zero = input(node, scale + 1);
    return is_constant(input(node, scale)) && (zero == kNoValue || is_constant(zero));
  }

  bool constant_grids(const Node &node, std::size_t first, std::size_t y_scale) const {
    if (!known(node, y_scale) || input(node, y_scale + 1) == kNoValue) return false;
    for (std::size_t i = first; i + 1 < node.inputs.size(); i += 3)
      if (!known(node, i + 1)) return false;
    return true;
  }

  bool opens(const Node &node, const Form &form) const {
    if (!known(node, form.y_scale) || input(node, form.y_scale + 1) == kNoValue) return false;
    for (const std::size_t i : form.operands)
      if (!known(node, i + 1)) return false;
    if (node.attrs.get_int("channels_last", 0) != 0) return false;
    if (std::string_view(form.base) == "Gemm" && node.attrs.get_float("alpha", 1) != 1) return false;
    const ValueId bias = form.bias ? input(node, form.bias) : kNoValue;
    if (bias == kNoValue) return true;
    return is_constant(bias) && is_constant(input(node, 3)) && g_.value(input(node, 1)).constant.count() == 1;
  }

  /// Only what moves elements, on integers whose grid is known here.
  bool moves_known(const Node &node) const {
    return node.outputs.size() == 1 && ops::moves(*node.op, node.attrs) && node.op->moved.first == 0 &&
           grids_.count(input(node, 0)) != 0 && std::string_view(node.op->name) != "Concat";
  }

  ValueId add_value(const std::string &name) {
    graph::Value value;
    value.name = names_.make(name);
    return g_.add_value(std::move(value));
  }

  Node &add_node(const std::string &name, const char *op, std::vector<ValueId> inputs, ValueId output) {
    Node node;
    node.name = name;
    node.op = ops::find_op(op);
    node.inputs = std::move(inputs);
    node.outputs = {output};
    g_.nodes.push_back(std::move(node));
    return g_.nodes.back();
  }

  /// The real form of integers `v`.
  ValueId dequantized(const Node &node, ValueId v, const GridIds &grid, std::int64_t axis) {
    const ValueId real = add_value(g_.value(v).name + "_real");
    std::vector<ValueId> inputs{v, grid.scale};
    if (grid.zero != kNoValue) inputs.push_back(grid.zero);
    Node &dq = add_node(node.name + "_" + g_.value(v).name + "_dequantize", "DequantizeLinear", inputs, real);
    if (g_.value(grid.scale).constant.count() > 1) dq.attrs.set("axis", axis);
    return real;
  }

  void quantized(const Node &node, ValueId real, const GridIds &grid) {
    add_node(node.name + "_quantize", "QuantizeLinear", {real, grid.scale, grid.zero}, node.outputs[0]);
    grids_[node.outputs[0]] = grid;
  }

  static GridIds grid_at(const Node &node, std::size_t scale) { return {input(node, scale), input(node, scale + 1)}; }

  ValueId biased(const Node &node, const Form &form) {
    const Tensor &integers = g_.value(input(node, form.bias)).constant;
    const auto scales = [&](std::size_t i) {
      const Tensor &scale = g_.value(input(node, i + 1)).constant;
      return ops::quantizer_of({node.op->name, "scale", QTN_INT8, &scale, nullptr, scale.count(), 0});
    };
    graph::Value value;
    value.name = names_.make(g_.value(input(node, form.bias)).name + "_real");
    value.constant = ops::accumulator_units(integers, *scales(0), *scales(3));
    value.dtype = QTN_FLOAT32;
    value.shape = integers.shape();
    value.quantizer = value.constant.quantizer();
    return g_.add_value(std::move(value));
  }

  void open(const Node &node, const Form &form) {
    std::vector<ValueId> inputs;
    const bool transposed = node.attrs.get_int("transB", 0) != 0;
    for (const std::size_t i : form.operands)
      inputs.push_back(dequantized(node, node.inputs[i], grid_at(node, i + 1), transposed ? 0 : form.column));
    if (form.bias && input(node, form.bias) != kNoValue) inputs.push_back(biased(node, form));
    const ValueId real = add_value(g_.value(node.outputs[0]).name + "_real");
    Node &base = add_node(node.name, form.base, std::move(inputs), real);
    base.attrs = node.attrs;
    base.attrs.erase("channels_last");
    quantized(node, real, grid_at(node, form.y_scale));
  }

  void open_concat(const Node &node) {
    std::vector<ValueId> inputs;
    for (std::size_t i = 2; i + 1 < node.inputs.size(); i += 3)
      inputs.push_back(dequantized(node, node.inputs[i], grid_at(node, i + 1), 0));
    const ValueId real = add_value(g_.value(node.outputs[0]).name + "_real");
    add_node(node.name, "Concat", std::move(inputs), real).attrs = node.attrs;
    quantized(node, real, grid_at(node, 0));
  }

  void open_move(Node &node) {
    const GridIds grid = grids_.at(node.inputs[0]);
    const ValueId y = node.outputs[0], real = add_value(g_.value(y).name + "_real");
    Node moved = node;
    moved.inputs[0] = dequantized(node, node.inputs[0], grid, 0);
    moved.outputs = {real};
    g_.nodes.push_back(std::move(moved));
    quantized(node, real, grid);
  }

  void keep(Node &node) {
    if (node.op == &ops::kQuantizeLinear && is_constant(input(node, 1)) && is_constant(input(node, 2)) &&
        g_.value(node.inputs[1]).constant.count() == 1)
      grids_[node.outputs[0]] = {node.inputs[1], node.inputs[2]};
    g_.nodes.push_back(std::move(node));
  }

  graph::Graph &g_;
  UniqueNames names_;
  std::map<ValueId, GridIds> grids_;  ///< of integers that nodes before this one make
};

}  // namespace

void open_qoperators(graph::Graph &g) {
  const bool any = std::any_of(g.nodes.begin(), g.nodes.end(), [](const Node &node) {
    const std::string_view name = node.op->name;
    return name.starts_with("QLinear") || name == "QGemm";
  });
  if (any) Opener(g).run();
}

}  // namespace qtn::onnx
