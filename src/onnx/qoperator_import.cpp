// SPDX-License-Identifier: Apache-2.0
// Operators that take scales and zero points as inputs, as the operators they are named after between DequantizeLinear
// and QuantizeLinear: QLinearConv is Conv. What moves integers about between them follows.
#include <algorithm>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "graph/edges.hpp"
#include "graph/unique_names.hpp"
#include "onnx/qdq.hpp"
#include "onnx/qoperator_forms.hpp"
#include "ops/common/inserted.hpp"
#include "ops/common/linear_grid.hpp"
#include "ops/common/matmulnbits.hpp"
#include "ops/common/qlinear.hpp"

namespace qtn::onnx {
namespace {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

/// Scale and zero point of integers.
struct GridIds {
  ValueId scale, zero;
};

bool is_byte(qdtype dtype) { return dtype == QTN_UINT8 || dtype == QTN_INT8; }

class QOperatorImporter {
 public:
  explicit QOperatorImporter(graph::Graph &g) : g_(g) {
    for (const graph::Value &value : g.values) names_.take(value.name);
  }

  void run() {
    find_wanted();
    std::vector<Node> nodes;
    std::swap(nodes, g_.nodes);
    for (Node &node : nodes) {
      const std::string_view op = node.op->name;
      const auto forms = qoperator_forms();
      const auto form = std::find_if(forms.begin(), forms.end(), [&](const QOperatorForm &f) { return op == f.name; });
      if (op == "QLinearConcat" && constant_grids(node, 2, 0))
        open_concat(node);
      else if (form != forms.end() && opens(node, *form))
        open(node, *form);
      else if (node.op == &ops::kMatMulNBits && has_constant_blocks(node))
        open_blocks(node);
      else if (moves_known(node))
        open_move(node);
      else if (node.op == &ops::kClip && clips_known(node))
        open_clip(node);
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

  /// Whether DequantizeLinear can say a grid that is known: with one scale or, of columns, a list of them; and without
  /// floats that overflow where integers do not.
  bool is_grid(const Node &node, std::size_t scale, bool of_columns = false) const {
    if (!known(node, scale)) return false;
    const Tensor &scales = g_.value(input(node, scale)).constant;
    const ValueId zero = input(node, scale + 1);
    const std::int64_t count = scales.count();
    return (count == 1 || (of_columns && scales.rank() == 1)) &&
           (zero == kNoValue || g_.value(zero).constant.count() == count) && graph::are_moderate(scales);
  }

  bool constant_grids(const Node &node, std::size_t first, std::size_t y_scale) const {
    if (!is_grid(node, y_scale) || input(node, y_scale + 1) == kNoValue) return false;
    for (std::size_t i = first; i + 1 < node.inputs.size(); i += 3)
      if (node.inputs[i] == kNoValue || !is_grid(node, i + 1)) return false;
    return true;
  }

  /// QGemm without a grid of its result, which is float then.
  static bool gives_floats(const Node &node, const QOperatorForm &form) {
    return node.op == &ops::kQGemm && input(node, form.y_scale) == kNoValue &&
           input(node, form.y_scale + 1) == kNoValue;
  }

  /// What reads constants alone is computed once, in integers.
  bool opens(const Node &node, const QOperatorForm &form) const {
    if (std::ranges::all_of(form.operands, [&](std::size_t i) { return is_constant(input(node, i)); })) return false;
    const bool grid = is_grid(node, form.y_scale) && input(node, form.y_scale + 1) != kNoValue;
    if (!grid && !gives_floats(node, form)) return false;
    for (const std::size_t i : form.operands)
      if (input(node, i) == kNoValue || !is_grid(node, i + 1, form.is_product() && i != form.operands[0])) return false;
    if (node.attrs.get_int("channels_last", 0) != 0 || node.attrs.get_int("opset", 13) < 13) return false;
    if (node.op == &ops::kQGemm && node.attrs.get_float("alpha", 1) != 1) return false;
    const ValueId bias = form.bias ? input(node, form.bias) : kNoValue;
    if (bias == kNoValue) return true;
    return is_constant(bias) && g_.value(bias).constant.dtype() == QTN_INT32 && is_constant(input(node, 3)) &&
           g_.value(input(node, 1)).constant.count() == 1;
  }

  /// Absent, or a constant of the type of these integers.
  bool is_integer(ValueId v, const GridIds &grid) const {
    if (v == kNoValue) return true;
    return is_constant(v) && g_.value(v).constant.count() == 1 &&
           g_.value(v).constant.dtype() == g_.value(grid.zero).constant.dtype();
  }

  void want(ValueId v, const GridIds &grid) {
    if (v != kNoValue && grid.zero != kNoValue && g_.value(grid.scale).constant.count() == 1)
      wanted_.try_emplace(v, grid);
  }

  /// Readers first, so that the grid of what is moved is that of where it comes to.
  void find_wanted() {
    const auto forms = qoperator_forms();
    for (auto node = g_.nodes.rbegin(); node != g_.nodes.rend(); ++node) {
      std::vector<std::size_t> operands;
      const auto form = std::ranges::find_if(
          forms, [&](const QOperatorForm &f) { return std::string_view(f.name) == node->op->name; });
      if (form != forms.end()) operands.assign(form->operands.begin(), form->operands.end());
      if (node->op == &ops::kDequantizeLinear) operands = {0};
      if (node->op == ops::find_op("QLinearConcat"))
        for (std::size_t i = 2; i < node->inputs.size(); i += 3) operands.push_back(i);
      for (const std::size_t i : operands)
        if (known(*node, i + 1)) want(input(*node, i), grid_at(*node, i + 1));
      const auto moved = moves_integers(*node) ? wanted_.find(node->outputs[0]) : wanted_.end();
      if (moved != wanted_.end()) want(node->inputs[0], GridIds(moved->second));
    }
  }

  /// Whether nothing but one operand is moved: others would be integers still where that is real.
  static bool moves_integers(const Node &node) {
    if (node.op == &ops::kConcat || (node.outputs.size() != 1 && node.op != &ops::kSplit)) return false;
    for (std::size_t i = 1; i < node.inputs.size(); ++i)
      if (node.op->moved.holds(i) && node.inputs[i] != kNoValue) return false;
    return ops::moves(*node.op, node.attrs) && node.op->moved.first == 0;
  }

  /// Whether the real node puts between real numbers what the integer that this one puts in stands for.
  bool inserts_known(const Node &node, const GridIds &grid) const {
    if (node.op == &ops::kPad) return is_integer(input(node, 2), grid);
    if (node.op == &ops::kTrilu || node.op == &ops::kCenterCropPad) return is_zero_at_zero(grid);
    return !ops::inserts_attribute(node.attrs);
  }

  bool is_zero_at_zero(const GridIds &grid) const { return item(to_plain(g_.value(grid.zero).constant)) == 0; }

  /// The grid of the integers that a node moves: that on which they were made, or on which constants are read.
  std::optional<GridIds> grid_of_moved(const Node &node) const {
    const ValueId x = input(node, 0);
    if (const auto made = grids_.find(x); made != grids_.end()) return made->second;
    const bool all = std::ranges::all_of(node.inputs, [&](ValueId v) { return v == kNoValue || is_constant(v); });
    const auto wanted = is_constant(x) && !all ? wanted_.find(node.outputs[0]) : wanted_.end();
    if (wanted == wanted_.end()) return std::nullopt;
    const qdtype dtype = g_.value(x).constant.dtype();
    const bool fits = is_byte(dtype) && g_.value(wanted->second.zero).constant.dtype() == dtype;
    return fits ? std::optional(wanted->second) : std::nullopt;
  }

  /// Only what moves elements, on integers whose grid is known here.
  bool moves_known(const Node &node) const {
    if (!moves_integers(node)) return false;
    const std::optional<GridIds> grid = grid_of_moved(node);
    return grid && inserts_known(node, *grid);
  }

  bool clips_known(const Node &node) const {
    const auto grid = grids_.find(input(node, 0));
    return grid != grids_.end() && is_integer(input(node, 1), grid->second) && is_integer(input(node, 2), grid->second);
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

  void quantized(const Node &node, ValueId real, const GridIds &grid, std::size_t output = 0) {
    const std::string name = cat(node.name, "_quantize", output ? cat("_", output) : "");
    add_node(name, "QuantizeLinear", {real, grid.scale, grid.zero}, node.outputs[output]);
    grids_[node.outputs[output]] = grid;
  }

  static GridIds grid_at(const Node &node, std::size_t scale) { return {input(node, scale), input(node, scale + 1)}; }

  /// One integer for all columns stands for another number in each of them, where these have scales of their own.
  static Tensor for_each_column(const Tensor &bias, std::int64_t scales) {
    if (scales == 1 || (bias.rank() > 0 && bias.shape().back() != 1)) return bias;
    Shape shape = bias.rank() > 0 ? bias.shape() : Shape{1};
    const Tensor rows = bias.reshaped(shape);
    shape[shape.size() - 1] = scales;
    return rows.expand(shape).to_contiguous();
  }

  ValueId biased(const Node &node, const QOperatorForm &form) {
    const Tensor integers =
        for_each_column(g_.value(input(node, form.bias)).constant, g_.value(input(node, 4)).constant.count());
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

  void open(const Node &node, const QOperatorForm &form) {
    std::vector<ValueId> inputs;
    for (const std::size_t i : form.operands)
      inputs.push_back(dequantized(node, node.inputs[i], grid_at(node, i + 1), column_axis(form, node)));
    if (form.bias && input(node, form.bias) != kNoValue) inputs.push_back(biased(node, form));
    const bool floats = gives_floats(node, form);
    const ValueId real = floats ? node.outputs[0] : add_value(g_.value(node.outputs[0]).name + "_real");
    Node &base = add_node(node.name, form.base, std::move(inputs), real);
    base.attrs = node.attrs;
    base.attrs.erase("channels_last");
    base.attrs.erase("opset");
    if (!floats) quantized(node, real, grid_at(node, form.y_scale));
  }

  void open_concat(const Node &node) {
    std::vector<ValueId> inputs;
    for (std::size_t i = 2; i + 1 < node.inputs.size(); i += 3)
      inputs.push_back(dequantized(node, node.inputs[i], grid_at(node, i + 1), 0));
    const ValueId real = add_value(g_.value(node.outputs[0]).name + "_real");
    add_node(node.name, "Concat", std::move(inputs), real).attrs = node.attrs;
    quantized(node, real, grid_at(node, 0));
  }

  bool has_constant_blocks(const Node &node) const {
    return !ops::asks_for_bytes(node.attrs) && input(node, 5) == kNoValue && input(node, 4) == kNoValue &&
           is_constant(input(node, 1)) && is_constant(input(node, 2)) &&
           (input(node, 3) == kNoValue ||
            (is_constant(node.inputs[3]) && g_.value(node.inputs[3]).constant.dtype() == QTN_UINT8));
  }

  /// MatMul of a constant on a grid of blocks.
  void open_blocks(const Node &node) {
    std::vector<const Tensor *> inputs;
    for (const ValueId v : node.inputs) inputs.push_back(v == kNoValue ? nullptr : &g_.value(v).constant);
    graph::Value value;
    const int order[] = {1, 0};
    try {
      value.constant = ops::nbits_weights({node.attrs, inputs}).permute(order).to_contiguous();
    } catch (const Error &e) {
      fail(e.status(), "node \"", node.name, "\": ", e.what());
    }
    value.name = names_.make(g_.value(node.inputs[1]).name + "_blocks");
    value.dtype = QTN_FLOAT32;
    value.shape = value.constant.shape();
    value.quantizer = value.constant.quantizer();
    add_node(node.name, "MatMul", {node.inputs[0], g_.add_value(std::move(value))}, node.outputs[0]);
  }

  void open_move(Node &node) {
    const GridIds grid = *grid_of_moved(node);
    Node moved = node;
    moved.inputs[0] = dequantized(node, node.inputs[0], grid, 0);
    if (node.op == &ops::kPad) {
      moved.inputs.resize(std::max<std::size_t>(moved.inputs.size(), 3), kNoValue);
      moved.inputs[2] = real_fill(node, grid);
    }
    for (ValueId &v : moved.outputs) v = add_value(g_.value(v).name + "_real");
    const std::vector<ValueId> reals = moved.outputs;
    g_.nodes.push_back(std::move(moved));
    for (std::size_t i = 0; i < reals.size(); ++i) quantized(node, reals[i], grid, i);
  }

  /// One integer of a grid as the constant that it stands for.
  ValueId real_number(const Node &node, const Tensor &integer, const GridIds &grid) {
    const Tensor &scale = g_.value(grid.scale).constant, &zero = g_.value(grid.zero).constant;
    graph::Value value;
    value.name = names_.make(node.name + "_real");
    value.constant =
        dequantize(integer.with_quantizer(ops::quantizer_of({node.op->name, "input", zero.dtype(), &scale, &zero})));
    value.dtype = QTN_FLOAT32;
    value.shape = integer.shape();
    return g_.add_value(std::move(value));
  }

  /// Integers are filled up with an integer: with 0 unless the node says otherwise.
  ValueId real_fill(const Node &pad, const GridIds &grid) {
    if (input(pad, 2) != kNoValue) return real_number(pad, g_.value(pad.inputs[2]).constant, grid);
    const Tensor zero(g_.value(grid.zero).constant.dtype(), {});
    *zero.as<std::uint8_t>() = 0;
    return real_number(pad, zero, grid);
  }

  void open_clip(const Node &node) {
    const GridIds grid = grids_.at(node.inputs[0]);
    std::vector<ValueId> inputs{dequantized(node, node.inputs[0], grid, 0)};
    for (std::size_t i = 1; i < node.inputs.size(); ++i)
      inputs.push_back(node.inputs[i] == kNoValue ? kNoValue
                                                  : real_number(node, g_.value(node.inputs[i]).constant, grid));
    const ValueId real = add_value(g_.value(node.outputs[0]).name + "_real");
    add_node(node.name, "Clip", std::move(inputs), real);
    quantized(node, real, grid);
  }

  void keep(Node &node) {
    if (node.op == &ops::kQuantizeLinear && is_constant(input(node, 1)) && is_constant(input(node, 2)) &&
        g_.value(node.inputs[1]).constant.count() == 1)
      grids_[node.outputs[0]] = {node.inputs[1], node.inputs[2]};
    g_.nodes.push_back(std::move(node));
  }

  graph::Graph &g_;
  graph::UniqueNames names_;
  std::map<ValueId, GridIds> grids_;   ///< of integers that nodes before this one make
  std::map<ValueId, GridIds> wanted_;  ///< on which integers are read
};

}  // namespace

void import_qoperators(graph::Graph &g) {
  std::vector<bool> quantized(g.values.size(), false);
  for (const Node &node : g.nodes)
    if (node.op == &ops::kQuantizeLinear) quantized[static_cast<std::size_t>(node.outputs[0])] = true;
  const bool any = std::any_of(g.nodes.begin(), g.nodes.end(), [&](const Node &node) {
    const std::string_view name = node.op->name;
    if (name.starts_with("QLinear") || name == "QGemm" || name == "MatMulNBits") return true;
    // Where results stay in float, such a file has nothing but moved integers, or, below 8 bits, clipped ones.
    const ValueId x = input(node, 0);
    const bool clips = node.op == &ops::kClip;
    if (x == kNoValue || (!clips && !ops::moves(*node.op, node.attrs))) return false;
    return quantized[static_cast<std::size_t>(x)] || (!clips && is_byte(g.value(x).constant.dtype()));
  });
  if (any) QOperatorImporter(g).run();
}

}  // namespace qtn::onnx
