// SPDX-License-Identifier: Apache-2.0
// Nodes between DequantizeLinear and QuantizeLinear as the operators that take integers: the inverse of
// qoperator_import.cpp. What has no such operator stays between the two.
#include <algorithm>
#include <iterator>
#include <map>

#include "base/error.hpp"
#include "graph/edges.hpp"
#include "graph/unique_names.hpp"
#include "onnx/qdq.hpp"
#include "onnx/qoperator_forms.hpp"
#include "ops/common/inserted.hpp"
#include "ops/common/linear_grid.hpp"
#include "ops/common/requantization.hpp"

namespace qtn::onnx {
namespace {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

std::size_t at(ValueId v) { return static_cast<std::size_t>(v); }

/// Operators that ONNX Runtime runs on 8-bit integers as they are.
constexpr std::string_view kMoves[] = {"Expand", "Flatten", "Gather",  "MaxPool", "Reshape",   "Resize",
                                       "Slice",  "Split",   "Squeeze", "Tile",    "Transpose", "Unsqueeze"};

/// Integers and their grid. Constants may be packed, which operators on integers are not: see in_bytes().
struct Operand {
  ValueId integers, scale, zero;
  QuantizerPtr quantizer;

  qdtype dtype() const { return plain_dtype(quantizer->dtype()); }
};

class QOperatorExporter {
 public:
  explicit QOperatorExporter(graph::Graph &g) : g_(g), uses_(g), gone_(g.nodes.size(), false) {
    for (const graph::Value &value : g.values) value_names_.take(value.name);
    for (const Node &node : g.nodes) node_names_.take(node.name);
  }

  void run() {
    std::vector<Node> nodes;
    for (std::size_t n = 0; n < g_.nodes.size(); ++n)
      if (!gone_[n]) close(n, nodes);
    g_.nodes = std::move(nodes);
    graph::remove_dead(g_);
  }

 private:
  void close(std::size_t n, std::vector<Node> &nodes) {
    Node node = g_.nodes[n];
    const std::string_view op = node.op->name;
    const auto forms = qoperator_forms();
    const auto form = std::find_if(forms.begin(), forms.end(), [&](const QOperatorForm &f) { return op == f.base; });
    std::vector<Node> after;
    if (op == "Concat")
      close_concat(node, after);
    else if (form != forms.end())
      close_form(*form, node, after);
    else
      close_move(node);
    nodes.push_back(std::move(node));
    std::move(after.begin(), after.end(), std::back_inserter(nodes));
  }

  const Tensor *constant(ValueId v) const {
    return v != kNoValue && g_.value(v).is_constant() ? &g_.value(v).constant : nullptr;
  }

  /// The integers and the grid of a QuantizeLinear or DequantizeLinear node for a tensor of this shape, if the grid is
  /// known and has eight bits, or fewer of a constant. Integers of large scales would stay integers as they are read.
  std::optional<Operand> operand_of(const Node &node, ValueId integers, const Shape &shape) const {
    const Tensor *scale = constant(input(node, 1)), *zero = constant(input(node, 2));
    if (!scale || !zero || (is_packed(zero->dtype()) && !constant(integers))) return std::nullopt;
    if (plain_dtype(zero->dtype()) != QTN_UINT8 && plain_dtype(zero->dtype()) != QTN_INT8) return std::nullopt;
    if ((shape.empty() && scale->count() != 1) || !ops::are_positive(*scale) || !graph::are_moderate(*scale))
      return std::nullopt;
    const QuantizerPtr q =
        ops::linear_quantizer(node.op->name, node.attrs, shape, *scale, zero, zero->dtype(), Numerics::onnx);
    if (q->per_block()) return std::nullopt;
    return Operand{integers, node.inputs[1], node.inputs[2], q};
  }

  /// What a value is the real form of.
  std::optional<Operand> integers_behind(ValueId v) const {
    const std::int32_t maker = uses_.producer[at(v)];
    if (maker < 0 || g_.nodes[at(maker)].op != &ops::kDequantizeLinear) return std::nullopt;
    const Node &dq = g_.nodes[at(maker)];
    const Tensor *integers = constant(dq.inputs[0]);
    return operand_of(dq, dq.inputs[0], integers ? integers->shape() : Shape{});
  }

  /// The QuantizeLinear node that alone reads a value, or -1.
  std::int32_t quantizes(ValueId v) const {
    if (!uses_.single_use(v)) return -1;
    const std::int32_t reader = uses_.consumers[at(v)][0];
    const Node &q = g_.nodes[at(reader)];
    return q.op == &ops::kQuantizeLinear && q.inputs[0] == v ? reader : -1;
  }

  std::optional<Operand> integers_after(ValueId v) const {
    const std::int32_t reader = quantizes(v);
    return reader < 0 ? std::nullopt : operand_of(g_.nodes[at(reader)], g_.nodes[at(reader)].outputs[0], Shape{});
  }

  static bool same_type(const std::vector<Operand> &operands, const Operand &y) {
    return std::all_of(operands.begin(), operands.end(), [&](const Operand &o) { return o.dtype() == y.dtype(); });
  }

  static bool all_per_tensor(const std::vector<Operand> &operands) {
    return std::all_of(operands.begin(), operands.end(), [](const Operand &o) { return o.quantizer->per_tensor(); });
  }

  std::optional<std::vector<Operand>> operands_of(const Node &node, std::size_t count) const {
    std::vector<Operand> operands;
    for (std::size_t i = 0; i < count; ++i) {
      const auto operand = integers_behind(node.inputs[i]);
      if (!operand) return std::nullopt;
      operands.push_back(*operand);
    }
    return operands;
  }

  /// What a product needs: types that ONNX Runtime has, and scales of the weights by output channel.
  bool fits_product(const QOperatorForm &form, const Node &node, const std::vector<Operand> &operands) const {
    const Quantizer &x = *operands[0].quantizer, &w = *operands[1].quantizer;
    if (!x.per_tensor() || (operands[0].dtype() == QTN_INT8 && operands[1].dtype() == QTN_UINT8)) return false;
    if (node.attrs.get_int("transA", 0) != 0 || node.attrs.get_float("alpha", 1) != 1) return false;
    if (input(node, 2) != kNoValue && node.attrs.get_float("beta", 1) != 1) return false;
    if (w.per_tensor()) return true;
    const Tensor &weight = *constant(operands[1].integers);
    const auto &zeros = w.zero_points();
    if (std::adjacent_find(zeros.begin(), zeros.end(), std::not_equal_to<>()) != zeros.end()) return false;
    if (form.column != 0 && weight.rank() != 2) return false;
    return normalize_axis(w.axis(), weight.rank(), form.name) ==
           normalize_axis(column_axis(form, node), weight.rank(), form.name);
  }

  /// The bias of each output channel as the engines take it; nothing where it is not constant, or no such list.
  std::optional<Tensor> integer_bias(const QOperatorForm &form, const Node &node,
                                     const std::vector<Operand> &operands) const {
    const Tensor *weight = constant(operands[1].integers);
    if (!weight) return std::nullopt;
    const std::int64_t channels = weight->dim(normalize_axis(column_axis(form, node), weight->rank(), form.name));
    const std::optional<Tensor> bias = bias_of(node.inputs[2]);
    if (!bias || (bias->count() != 1 && !(bias->count() == channels && bias->shape().back() == channels)))
      return std::nullopt;
    const Quantizer &x = *operands[0].quantizer, &w = *operands[1].quantizer;
    if (ops::is_bias_beyond_int32(*bias, x, w, static_cast<std::size_t>(channels))) return std::nullopt;
    const std::vector<std::int32_t> integers = ops::integer_bias(&*bias, x, w, static_cast<std::size_t>(channels));
    return Tensor::from<std::int32_t>(QTN_INT32, Shape{channels}, std::span(integers));
  }

  /// A constant bias, behind DequantizeLinear or not.
  std::optional<Tensor> bias_of(ValueId v) const {
    if (const Tensor *real = constant(v)) return *real;
    const std::int32_t maker = uses_.producer[at(v)];
    if (maker < 0 || g_.nodes[at(maker)].op != &ops::kDequantizeLinear) return std::nullopt;
    const Node &dq = g_.nodes[at(maker)];
    const Tensor *integers = constant(dq.inputs[0]), *scale = constant(input(dq, 1));
    if (!integers || integers->dtype() != QTN_INT32 || !scale) return std::nullopt;
    return integers->with_quantizer(ops::linear_quantizer(dq.op->name, dq.attrs, integers->shape(), *scale,
                                                          constant(input(dq, 2)), QTN_INT32, Numerics::onnx));
  }

  static void put(Node &node, std::size_t i, std::initializer_list<ValueId> ids) {
    node.inputs.resize(std::max(node.inputs.size(), i + ids.size()), kNoValue);
    std::copy(ids.begin(), ids.end(), node.inputs.begin() + static_cast<std::ptrdiff_t>(i));
  }

  /// The same integers, one to a byte.
  ValueId in_bytes(ValueId v) {
    const Tensor *packed = constant(v);
    if (!packed || !is_packed(packed->dtype())) return v;
    const auto [known, is_new] = in_bytes_.try_emplace(v);
    if (is_new) {
      const Tensor bytes = to_plain(*packed);
      known->second = add_constant(cat(g_.value(v).name, "_", dtype_name(bytes.dtype())), bytes);
    }
    return known->second;
  }

  void close_form(const QOperatorForm &form, Node &node, std::vector<Node> &after) {
    const std::optional<Operand> y = integers_after(node.outputs[0]);
    const auto operands = operands_of(node, form.operands.size());
    // Only Gemm among these may leave its sums in float.
    const bool floats = node.op == &ops::kGemm && !y && quantizes(node.outputs[0]) < 0;
    if (!operands || !(y || floats)) return;
    if (y && operands->front().dtype() != y->dtype()) return;
    if (form.is_product() ? !fits_product(form, node, *operands)
                          : !same_type(*operands, *y) || !all_per_tensor(*operands))
      return;
    if (node.op == &ops::kAveragePool && node.attrs.has("dilations")) return;
    // ONNX Runtime's QLinearSoftmax looks exponentials up and rounds otherwise.
    if (node.op == &ops::kSoftmax) return;
    std::optional<Tensor> bias;
    if (form.bias && input(node, 2) != kNoValue) {
      bias = integer_bias(form, node, *operands);
      if (!bias) return;
    }
    const std::string bias_name = bias ? g_.value(node.inputs[2]).name + "_quantized" : "";
    node.inputs.clear();
    for (std::size_t i = 0; i < operands->size(); ++i) {
      const Operand &o = (*operands)[i];
      put(node, form.operands[i], {in_bytes(o.integers), o.scale, in_bytes(o.zero)});
    }
    if (bias) put(node, form.bias, {add_constant(bias_name, *bias)});
    if (y) put(node, form.y_scale, {y->scale, y->zero});
    node.attrs.erase("beta");
    finish(form.name, node, y, after);
  }

  void close_concat(Node &node, std::vector<Node> &after) {
    const std::optional<Operand> y = integers_after(node.outputs[0]);
    const auto operands = operands_of(node, node.inputs.size());
    if (!y || !operands || !same_type(*operands, *y) || !all_per_tensor(*operands)) return;
    node.inputs = {y->scale, y->zero};
    for (const Operand &o : *operands) put(node, node.inputs.size(), {in_bytes(o.integers), o.scale, in_bytes(o.zero)});
    finish("QLinearConcat", node, y, after);
  }

  /// Elements moved under one grid: the operator itself, on integers.
  void close_move(Node &node) {
    const std::string_view op = node.op->name;
    if (std::find(std::begin(kMoves), std::end(kMoves), op) == std::end(kMoves) || node.clamp) return;
    const std::optional<Operand> x = integers_behind(node.inputs[0]);
    if (!x || !ops::moves(*node.op, node.attrs) || ops::inserts_attribute(node.attrs)) return;
    std::vector<Operand> results;
    for (const ValueId v : node.outputs) {
      const std::optional<Operand> y = v == kNoValue ? std::nullopt : integers_after(v);
      if (!y || !(*y->quantizer == *x->quantizer)) return;
      results.push_back(*y);
    }
    node.inputs[0] = x->integers;
    for (std::size_t i = 0; i < results.size(); ++i) {
      gone_[at(quantizes(node.outputs[i]))] = true;
      node.outputs[i] = results[i].integers;
    }
  }

  /// Lets a node of this operator make the integers of y, if there are any. A clamp that the type does not do by itself
  /// follows on the integers.
  void finish(const char *op, Node &node, const std::optional<Operand> &y, std::vector<Node> &after) {
    node.op = ops::find_op(op);
    if (!y) return;
    gone_[at(quantizes(node.outputs[0]))] = true;
    node.outputs[0] = y->integers;
    if (!node.clamp) return;
    const QuantizedRange range = ops::output_range(*y->quantizer, &*node.clamp);
    const IntegerRange whole = integer_range(y->dtype());
    node.clamp.reset();
    if (range.lo == whole.lo && range.hi == whole.hi) return;
    const std::string name = g_.value(y->integers).name;
    graph::Value raw = g_.value(y->integers);
    raw.name = value_names_.make(name + "_unclamped");
    Node clip;
    clip.name = node_names_.make(node.name + "_Clip");
    clip.op = ops::find_op("Clip");
    clip.outputs = {y->integers};
    node.outputs[0] = g_.add_value(std::move(raw));
    clip.inputs = {node.outputs[0], add_constant(name + "_min", integer(range.lo, y->dtype())),
                   add_constant(name + "_max", integer(range.hi, y->dtype()))};
    after.push_back(std::move(clip));
  }

  static Tensor integer(std::int32_t value, qdtype dtype) {
    Tensor t(dtype, {});
    t.as<std::uint8_t>()[0] = static_cast<std::uint8_t>(value);
    return t;
  }

  ValueId add_constant(const std::string &name, Tensor tensor) {
    graph::Value value;
    value.name = value_names_.make(name);
    value.dtype = tensor.dtype();
    value.shape = tensor.shape();
    value.constant = std::move(tensor);
    return g_.add_value(std::move(value));
  }

  graph::Graph &g_;
  const graph::Uses uses_;               ///< of the graph as it was
  std::vector<bool> gone_;               ///< by node: its work is part of another
  std::map<ValueId, ValueId> in_bytes_;  ///< packed constants: the same in bytes
  graph::UniqueNames value_names_, node_names_;
};

}  // namespace

void export_qoperators(graph::Graph &g) { QOperatorExporter(g).run(); }

}  // namespace qtn::onnx
