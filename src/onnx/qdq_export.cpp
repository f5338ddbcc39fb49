// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.hpp"
#include "core/scales.hpp"
#include "graph/edges.hpp"
#include "graph/unique_names.hpp"
#include "onnx/qdq.hpp"

namespace qtn::onnx {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

namespace {

std::size_t at(ValueId v) { return static_cast<std::size_t>(v); }

Tensor zero_points(const Quantizer &q, const Shape &shape) {
  Tensor zeros(plain_dtype(q.dtype()), shape);
  dispatch(zeros.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t i = 0; i < q.count(); ++i) zeros.as<T>()[i] = static_cast<T>(q.zero_points()[i]);
  });
  return from_plain(zeros, q.dtype());
}

/// DequantizeLinear of int32 has no zero point, says ONNX; that of a bias would be a list of zeros as long as itself.
bool goes_without_zero_points(const Quantizer &q) {
  const auto &zeros = q.zero_points();
  return q.dtype() == QTN_INT32 && std::all_of(zeros.begin(), zeros.end(), [](std::int64_t z) { return z == 0; });
}

/// QuantizeLinear saturates to the whole type; constants are integers already, so that only their type counts.
void check_range(const std::string &name, const Quantizer &q) {
  if (is_tiny_float(q.dtype()) || q.range() == integer_range(q.dtype())) return;
  const IntegerRange &got = q.range();
  if (dtype_bits(q.dtype()) == 8)
    fail(QTN_EUNSUPPORTED, "value \"", name, "\": ONNX defines [0, 255] for quint8 and [-128, 127] for int8, got [",
         got.lo, ", ", got.hi, "]");
  const IntegerRange whole = integer_range(q.dtype());
  fail(QTN_EUNSUPPORTED, "value \"", name, "\": ONNX defines [", whole.lo, ", ", whole.hi, "] for ",
       dtype_name(q.dtype()), ", got [", got.lo, ", ", got.hi, "]");
}

class QdqExporter {
 public:
  QdqExporter(const graph::Graph &g, bool weight_pairs)
      : g_(g), uses_(g), read_as_(g.values.size()), weight_pairs_(weight_pairs) {
    for (std::size_t v = 0; v < read_as_.size(); ++v) read_as_[v] = static_cast<ValueId>(v);
    for (const Node &node : g_.nodes) passes_.push_back(graph::passes_integers(g_, node));
    nodes_.swap(g_.nodes);
    settle_names();
  }

  graph::Graph run() {
    for (std::size_t v = 0; v < read_as_.size(); ++v)
      if (g_.values[v].is_constant() && g_.values[v].quantizer) expand_constant(static_cast<ValueId>(v));
    for (const ValueId v : g_.inputs) expand_activation(v, v);
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      Node &node = nodes_[n];
      const bool stores = passes_[n] && node.op == &ops::kQuantizeLinear;
      for (std::size_t i = stores ? 1 : 0; i < node.inputs.size(); ++i)
        if (node.inputs[i] != kNoValue) node.inputs[i] = read_as_[at(node.inputs[i])];
      const std::vector<ValueId> outputs = node.outputs;
      if (is_rounded_copy(node)) {
        expand_activation(outputs[0], node.inputs[0]);
        continue;
      }
      g_.nodes.push_back(std::move(node));
      if (passes_[n] && !stores) {
        g_.value(outputs[0]).quantizer = nullptr;
        continue;
      }
      for (const ValueId v : outputs)
        if (v != kNoValue) expand_activation(v, v);
    }
    for (ValueId &v : g_.outputs) v = read_as_[at(v)];
    return std::move(g_);
  }

 private:
  /// The interface first: whatever else wants one of its names gets another.
  void settle_names() {
    std::vector<bool> settled(g_.values.size(), false);
    const auto settle = [&](ValueId v) {
      if (settled[at(v)]) return;
      settled[at(v)] = true;
      graph::Value &value = g_.value(v);
      value.name = value_names_.make(value.name.empty() ? cat("value_", v) : value.name);
    };
    for (const ValueId v : g_.inputs) settle(v);
    for (const ValueId v : g_.outputs) settle(v);
    for (std::size_t v = 0; v < settled.size(); ++v) settle(static_cast<ValueId>(v));
    for (Node &node : nodes_) node.name = node_names_.make(node.name.empty() ? node.op->name : node.name);
  }

  ValueId add_value(const std::string &name, qdtype dtype, const std::optional<Shape> &shape) {
    graph::Value value;
    value.name = value_names_.make(name);
    value.dtype = dtype;
    value.shape = shape;
    return g_.add_value(std::move(value));
  }

  ValueId add_constant(const std::string &name, Tensor tensor) {
    const ValueId id = add_value(name, tensor.dtype(), tensor.shape());
    g_.value(id).constant = std::move(tensor);
    return id;
  }

  Node &add_node(const std::string &name, const ops::OpDef *op, std::vector<ValueId> inputs, ValueId output) {
    Node node;
    node.name = node_names_.make(name);
    node.op = op;
    node.inputs = std::move(inputs);
    node.outputs = {output};
    return g_.nodes.emplace_back(std::move(node));
  }

  /// `integers`, and the scale and zero point of a tensor of this shape as initializers: scalars, lists for channels, a
  /// grid for blocks.
  std::vector<ValueId> operands(ValueId integers, const std::string &name, const Quantizer &q, const Shape &of) {
    const Shape shape = scale_shape(q, of);
    const std::vector<float> scales(q.scales().begin(), q.scales().end());
    const ValueId scale = add_constant(name + "_scale", Tensor::from<float>(QTN_FLOAT32, shape, std::span(scales)));
    return {integers, scale, add_constant(name + "_zero_point", zero_points(q, shape))};
  }

  void expand_constant(ValueId v) {
    const std::string name = g_.value(v).name;
    const QuantizerPtr q = g_.value(v).quantizer;
    const Tensor integers = g_.value(v).constant.with_quantizer(nullptr);
    g_.value(v).constant = Tensor();
    g_.value(v).quantizer = nullptr;
    std::vector<ValueId> inputs;
    if (const Tensor floats = weight_pairs_ ? floats_of(integers, q) : Tensor(); floats.has_data()) {
      const ValueId stored = add_constant(name + "_float", floats);
      const ValueId made = add_value(name + "_quantized", q->dtype(), integers.shape());
      inputs = operands(stored, name, *q, integers.shape());
      set_axis(add_node(name + "_QuantizeLinear", &ops::kQuantizeLinear, inputs, made), *q);
      inputs[0] = made;
    } else {
      const ValueId stored = add_constant(name + "_quantized", integers);
      inputs = operands(stored, name, *q, integers.shape());
    }
    if (goes_without_zero_points(*q)) inputs.pop_back();
    set_axis(add_node(name + "_DequantizeLinear", &ops::kDequantizeLinear, std::move(inputs), v), *q);
  }

  static void set_axis(Node &node, const Quantizer &q) {
    if (!q.per_tensor()) node.attrs.set("axis", std::int64_t{q.axis()});
    if (q.per_block()) node.attrs.set("block_size", q.block_size());
  }

  /// What QuantizeLinear makes these integers of; nothing where it cannot: at scales so small that floats have gaps.
  static Tensor floats_of(const Tensor &integers, const QuantizerPtr &q) {
    if ((q->dtype() != QTN_INT8 && q->dtype() != QTN_UINT8) || q->per_block()) return {};
    const auto whole =
        std::make_shared<Quantizer>(q->dtype(), q->scheme(), q->axis(), q->scales(), q->zero_points(), Numerics::onnx);
    const Tensor floats = dequantize(integers.with_quantizer(whole)), again = quantize(floats, whole);
    const bool same = std::equal(again.as<const std::uint8_t>(), again.as<const std::uint8_t>() + again.count(),
                                 integers.to_contiguous().as<const std::uint8_t>());
    return same ? floats : Tensor();
  }

  /// Whether a reader makes the integers of a value on a grid itself.
  auto stores_integers() const {
    return [this](std::int32_t reader) { return passes_[at(reader)]; };
  }

  /// An Identity that only gives floats a grid, all of it: grids of few bits come with a clamp.
  bool is_rounded_copy(const Node &node) const {
    return node.op == &ops::kIdentity && !node.clamp && g_.value(node.outputs[0]).quantizer &&
           !uses_.is_output[at(node.outputs[0])] &&
           std::ranges::none_of(uses_.consumers[at(node.outputs[0])], stores_integers());
  }

  /// from -> QuantizeLinear -> DequantizeLinear -> all that read v, which is made of `from` or is that.
  void expand_activation(ValueId v, ValueId from) {
    const QuantizerPtr q = g_.value(v).quantizer;
    if (!q) return;
    g_.value(v).quantizer = nullptr;
    if (std::ranges::all_of(uses_.consumers[at(v)], stores_integers()) && !uses_.is_output[at(v)]) return;
    const std::string name = g_.value(v).name;
    if (!q->per_tensor())
      fail(QTN_EUNSUPPORTED, "value \"", name, "\": activations quantized per ", q->per_channel() ? "channel" : "block",
           " cannot be written");
    check_range(name, *q);
    const std::optional<Shape> shape = g_.value(v).shape;
    const bool is_input = uses_.producer[at(v)] < 0;
    const ValueId integers = add_value(name + "_quantized", q->dtype(), shape);
    const ValueId real = add_value(name + "_dequantized", QTN_FLOAT32, shape);
    g_.value(real).symbols = g_.value(v).symbols;
    if (uses_.is_output[at(v)] && !is_input) {
      g_.value(v).name = value_names_.make(name + "_float");
      g_.value(real).name = name;
    }
    std::vector<ValueId> inputs = operands(from, name, *q, {});
    add_node(name + "_QuantizeLinear", &ops::kQuantizeLinear, inputs, integers);
    inputs[0] = integers;
    add_node(name + "_DequantizeLinear", &ops::kDequantizeLinear, std::move(inputs), real);
    read_as_[at(v)] = real;
  }

  graph::Graph g_;
  graph::Uses uses_;
  std::vector<ValueId> read_as_;  ///< by value id of the original graph: what its readers read
  std::vector<Node> nodes_;
  std::vector<bool> passes_;  ///< by node: see graph::passes_integers(); such a node needs no pair beside it
  bool weight_pairs_;
  graph::UniqueNames value_names_, node_names_;
};

}  // namespace

graph::Graph export_qdq(const graph::Graph &g, bool weight_pairs) { return QdqExporter(g, weight_pairs).run(); }

}  // namespace qtn::onnx
