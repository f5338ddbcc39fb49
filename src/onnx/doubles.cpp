// SPDX-License-Identifier: Apache-2.0
#include "onnx/doubles.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_map>

#include "onnx/bodies.hpp"
#include "onnx/tensor_proto.hpp"

namespace qtn::onnx {
namespace {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

/// Operators that are defined here on float32 alone, and ConvTranspose, whose weights are put on grids as those are.
constexpr std::string_view kNarrow[] = {"AveragePool", "BatchNormalization", "Conv",   "ConvTranspose",
                                        "Gemm",        "GlobalAveragePool",  "MatMul", "MatMulNBits",
                                        "PRelu",       "ReduceMean",         "Resize"};

bool is_narrow(const Node &node) {
  return std::find(std::begin(kNarrow), std::end(kNarrow), std::string_view(node.op->name)) != std::end(kNarrow);
}

/// The scale of a grid, which is float32 here; kNoValue where it is computed.
ValueId grid_scale(const graph::Graph &g, const Node &node) {
  const bool has_grid = node.op == &ops::kQuantizeLinear || node.op == &ops::kDequantizeLinear;
  const ValueId scale = has_grid ? node.inputs[1] : kNoValue;
  return scale != kNoValue && g.value(scale).is_constant() ? scale : kNoValue;
}

class Narrowing {
 public:
  Narrowing(graph::Graph &g, graph::UniqueNames &value_names, graph::UniqueNames &node_names)
      : g_(g), value_names_(value_names), node_names_(node_names), other_(g.values.size(), kNone) {}

  void run() {
    if (!is_needed()) return;
    std::vector<Node> nodes;
    std::swap(nodes, g_.nodes);
    // What reads or makes such an input or output works on another value.
    std::vector<ValueId> stand_in(other_.size());
    for (std::size_t v = 0; v < other_.size(); ++v) stand_in[v] = static_cast<ValueId>(v);
    for (const ValueId v : g_.inputs) {
      if (!is_other(v)) continue;
      stand_in[at(v)] = add_float(v);
      add_cast(v, stand_in[at(v)], QTN_FLOAT32);
    }
    std::vector<ValueId> outputs;
    for (const ValueId v : g_.outputs) {
      if (!is_other(v) || stand_in[at(v)] != v) continue;
      stand_in[at(v)] = add_float(v);
      std::swap(g_.value(v).constant, g_.value(stand_in[at(v)]).constant);
      outputs.push_back(v);
    }
    for (graph::Value &value : g_.values)
      if (value.is_constant()) to_float(value);
    for (std::size_t v = 0; v < other_.size(); ++v)
      if (other_[v] != kNone && stand_in[v] == static_cast<ValueId>(v) && g_.values[v].dtype)
        g_.values[v].dtype = QTN_FLOAT32;
    for (Node &node : nodes) {
      for (std::vector<ValueId> *values : {&node.inputs, &node.outputs})
        for (ValueId &v : *values)
          if (v != kNoValue) v = stand_in[at(v)];
      to_float(node);
      g_.nodes.push_back(std::move(node));
    }
    for (const ValueId v : outputs) {
      g_.value(v).dtype = other_[at(v)];
      add_cast(stand_in[at(v)], v, other_[at(v)]);
    }
  }

 private:
  static std::size_t at(ValueId v) { return static_cast<std::size_t>(v); }

  static constexpr qdtype kNone = static_cast<qdtype>(0);

  static bool is_other(qdtype dtype) { return dtype == QTN_FLOAT64 || dtype == QTN_FLOAT16 || dtype == QTN_BFLOAT16; }
  bool is_other(ValueId v) const { return v != kNoValue && other_[at(v)] != kNone; }
  bool is_float32(ValueId v) const {
    return v != kNoValue && (g_.value(v).dtype == QTN_FLOAT32 || g_.value(v).constant.dtype() == QTN_FLOAT32);
  }
  void set(ValueId v, qdtype dtype) { other_[at(v)] = is_other(dtype) ? dtype : kNone; }

  /// Finds the values that are other floats than float32, and whether a node that has no such form has one, or a grid.
  bool is_needed() {
    for (std::size_t v = 0; v < other_.size(); ++v)
      if (g_.values[v].is_constant()) set(static_cast<ValueId>(v), g_.values[v].constant.dtype());
    for (const ValueId v : g_.inputs) set(v, g_.value(v).dtype.value_or(kNone));
    const bool weights =
        std::ranges::any_of(
            g_.values, [](const graph::Value &v) { return is_other(v.constant.dtype()) && v.constant.count() > 1; }) ||
        std::ranges::any_of(g_.nodes, [this](const Node &node) { return casts_weights(node); });
    bool needed = false;
    for (const Node &node : g_.nodes) {
      const auto read = std::ranges::find_if(node.inputs, [&](ValueId v) { return is_other(v); });
      const bool reads = read != node.inputs.end();
      if (reads && node.op == &ops::kBitCast) return false;  // which wants the bits that the file says
      needed = needed || (reads && is_narrow(node) && (weights || other_[at(*read)] == QTN_FLOAT64));
      needed = needed || std::ranges::any_of(node.bodies, [this](const auto &body) {
                 graph::Graph inside = *body;
                 return Narrowing(inside, value_names_, node_names_).is_needed();
               });
      const std::size_t first = node.op->moved.first;
      const ValueId main = first < node.inputs.size() ? node.inputs[first] : kNoValue;
      const ValueId moved = is_other(main) ? main : reads && !is_float32(main) ? *read : kNoValue;
      const qdtype given = moved == kNoValue ? QTN_FLOAT32 : other_[at(moved)];
      for (std::size_t o = 0; o < node.outputs.size(); ++o) {
        const ValueId v = node.outputs[o];
        if (v == kNoValue) continue;
        const qdtype made =
            node.bodies.empty() ? ops::made_dtype(*node.op, node.attrs, o, given) : g_.value(v).dtype.value_or(kNone);
        set(v, g_.value(v).dtype.value_or(made) == made ? made : kNone);
      }
      const ValueId scale = grid_scale(g_, node);
      needed =
          needed || is_other(scale) || (scale != kNoValue && (is_other(node.inputs[0]) || is_other(node.outputs[0])));
    }
    return needed;
  }

  /// Weights that a file has as float32, for products in fewer bits.
  bool casts_weights(const Node &node) const {
    return node.op == &ops::kCast && is_other(static_cast<qdtype>(node.attrs.get_int("to", kNone))) &&
           node.inputs[0] != kNoValue && g_.value(node.inputs[0]).constant.count() > 1;
  }

  /// One float32 tensor for each tensor, which any number of bodies may read. The one it was is not kept for that.
  Tensor to_float(const Tensor &t) {
    if (!is_other(t.dtype())) return t;
    Made &made = made_[t.data()];
    if (made.of.expired() || made.floats.shape() != t.shape()) made = {t.storage(), in_float32(t)};
    return made.floats;
  }

  void to_float(graph::Value &value) {
    value.constant = to_float(value.constant);
    value.dtype = value.constant.dtype();
  }

  /// Types that nodes make are said by ONNX's number, or by a tensor; bodies are graphs among values in float32.
  void to_float(Node &node) {
    for (const char *name : {"to", "dtype", "output_dtype", "output_datatype"})
      if (is_other(static_cast<qdtype>(node.attrs.get_int(name, kNone))))
        node.attrs.set(name, std::int64_t{QTN_FLOAT32});
    if (const Tensor *value = node.attrs.get_tensor("value"); value && is_other(value->dtype()))
      node.attrs.set("value", to_float(*value));
    change_bodies(node, [this](graph::Graph &body) {
      for (graph::Value &value : body.values)
        if (value.is_constant())
          to_float(value);
        else if (value.dtype && is_other(*value.dtype))
          value.dtype = QTN_FLOAT32;
      for (Node &inner : body.nodes) to_float(inner);
    });
  }

  ValueId add_float(ValueId v) {
    graph::Value value;
    value.name = value_names_.make(g_.value(v).name + "_float32");
    value.dtype = QTN_FLOAT32;
    value.shape = g_.value(v).shape;
    return g_.add_value(std::move(value));
  }

  void add_cast(ValueId from, ValueId to, qdtype dtype) {
    Node node;
    node.name = node_names_.make(g_.value(to).name + "_Cast");
    node.op = &ops::kCast;
    node.attrs.set("to", std::int64_t{dtype});
    node.inputs = {from};
    node.outputs = {to};
    g_.nodes.push_back(std::move(node));
  }

  graph::Graph &g_;
  graph::UniqueNames &value_names_, &node_names_;
  std::vector<qdtype> other_;  ///< by value id of the graph as it was

  struct Made {
    std::weak_ptr<void> of = {};
    Tensor floats = {};
  };
  std::unordered_map<const void *, Made> made_;  ///< by where the elements are, or were
};

}  // namespace

void narrow_doubles(graph::Graph &g, graph::UniqueNames &value_names, graph::UniqueNames &node_names) {
  Narrowing(g, value_names, node_names).run();
}

}  // namespace qtn::onnx
