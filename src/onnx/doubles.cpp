// SPDX-License-Identifier: Apache-2.0
#include "onnx/doubles.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

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
/// Operators whose results are integers or booleans whatever they read.
constexpr std::string_view kOthers[] = {"And",  "ArgMax", "ArgMin",      "Equal", "Greater", "GreaterOrEqual",
                                        "Less", "Not",    "LessOrEqual", "Or",    "Shape"};

template <class Names>
bool is_one_of(const Names &names, const Node &node) {
  return std::find(std::begin(names), std::end(names), std::string_view(node.op->name)) != std::end(names);
}

class Narrowing {
 public:
  Narrowing(graph::Graph &g, graph::UniqueNames &value_names, graph::UniqueNames &node_names)
      : g_(g), value_names_(value_names), node_names_(node_names), wide_(g.values.size(), false) {}

  void run() {
    if (!is_needed()) return;
    std::vector<Node> nodes;
    std::swap(nodes, g_.nodes);
    // What reads or makes a wide input or output works on another value.
    std::vector<ValueId> stand_in(wide_.size());
    for (std::size_t v = 0; v < wide_.size(); ++v) stand_in[v] = static_cast<ValueId>(v);
    for (const ValueId v : g_.inputs) {
      if (!wide_[at(v)]) continue;
      stand_in[at(v)] = add_narrow(v);
      add_cast(v, stand_in[at(v)], QTN_FLOAT32);
    }
    std::vector<ValueId> outputs;
    for (const ValueId v : g_.outputs) {
      if (!wide_[at(v)] || stand_in[at(v)] != v) continue;
      stand_in[at(v)] = add_narrow(v);
      std::swap(g_.value(v).constant, g_.value(stand_in[at(v)]).constant);
      outputs.push_back(v);
    }
    for (graph::Value &value : g_.values)
      if (value.is_constant()) narrow(value);
    for (std::size_t v = 0; v < wide_.size(); ++v)
      if (wide_[v] && stand_in[v] == static_cast<ValueId>(v) && g_.values[v].dtype == QTN_FLOAT64)
        g_.values[v].dtype = QTN_FLOAT32;
    for (Node &node : nodes) {
      for (std::vector<ValueId> *values : {&node.inputs, &node.outputs})
        for (ValueId &v : *values)
          if (v != kNoValue) v = stand_in[at(v)];
      narrow_attributes(node);
      g_.nodes.push_back(std::move(node));
    }
    for (const ValueId v : outputs) {
      g_.value(v).dtype = QTN_FLOAT64;
      add_cast(stand_in[at(v)], v, QTN_FLOAT64);
    }
  }

 private:
  static std::size_t at(ValueId v) { return static_cast<std::size_t>(v); }

  static bool makes_doubles(const Node &node) {
    if (node.op == &ops::kCast) return node.attrs.get_int("to", 0) == QTN_FLOAT64;
    const Tensor *value = node.op == &ops::kConstantOfShape ? node.attrs.get_tensor("value") : nullptr;
    return value && value->dtype() == QTN_FLOAT64;
  }

  /// Finds the values that are float64, and whether a node that has no such form reads one.
  bool is_needed() {
    for (std::size_t v = 0; v < wide_.size(); ++v)
      wide_[v] = g_.values[v].is_constant() && g_.values[v].constant.dtype() == QTN_FLOAT64;
    for (const ValueId v : g_.inputs) wide_[at(v)] = g_.value(v).dtype == QTN_FLOAT64;
    bool needed = false;
    for (const Node &node : g_.nodes) {
      const bool reads =
          std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return v != kNoValue && wide_[at(v)]; });
      needed = needed || (reads && is_one_of(kNarrow, node));
      const bool hands_on = reads && node.op != &ops::kCast && !is_one_of(kOthers, node);
      for (const ValueId v : node.outputs)
        if (v != kNoValue)
          wide_[at(v)] = (hands_on || makes_doubles(node)) && g_.value(v).dtype.value_or(QTN_FLOAT64) == QTN_FLOAT64;
    }
    return needed;
  }

  static void narrow(graph::Value &value) {
    value.constant = value.constant.dtype() == QTN_FLOAT64 ? in_float32(value.constant) : value.constant;
    value.dtype = value.constant.dtype();
  }

  static void narrow_attributes(Node &node) {
    if (!makes_doubles(node)) return;
    if (node.op == &ops::kCast)
      node.attrs.set("to", std::int64_t{QTN_FLOAT32});
    else
      node.attrs.set("value", in_float32(*node.attrs.get_tensor("value")));
  }

  ValueId add_narrow(ValueId v) {
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
  std::vector<bool> wide_;  ///< by value id of the graph as it was
};

}  // namespace

void narrow_doubles(graph::Graph &g, graph::UniqueNames &value_names, graph::UniqueNames &node_names) {
  Narrowing(g, value_names, node_names).run();
}

}  // namespace qtn::onnx
