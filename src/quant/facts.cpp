// SPDX-License-Identifier: Apache-2.0
#include "quant/facts.hpp"

#include <algorithm>
#include <string_view>

#include "base/error.hpp"

namespace qtn::quant {
namespace {

constexpr std::string_view kTruthValues[] = {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"};

/// From types of inputs alone, so that a graph of unknown shapes has types too.
qdtype output_dtype(const graph::Node &node, std::size_t output, const std::vector<qdtype> &dtype) {
  const std::string_view op = node.op->name;
  if (op == "Shape" || op == "ArgMax" || op == "ArgMin" || (op == "MaxPool" && output == 1)) return QTN_INT64;
  if (std::find(std::begin(kTruthValues), std::end(kTruthValues), op) != std::end(kTruthValues)) return QTN_BOOL;
  if (op == "LayerNormalization" && output > 0) return QTN_FLOAT32;
  if (op == "Dropout" && output == 1) return QTN_BOOL;
  if (op == "Cast") return static_cast<qdtype>(node.attrs.get_int("to", QTN_FLOAT32));
  if (op == "ConstantOfShape") {
    const Tensor *value = node.attrs.get_tensor("value");
    return value ? value->dtype() : QTN_FLOAT32;
  }
  const graph::ValueId first = input_of(node, node.op->moved.first);
  return first == graph::kNoValue ? QTN_FLOAT32 : dtype[static_cast<std::size_t>(first)];
}

}  // namespace

Facts::Facts(const graph::Graph &g) : uses(g), dtype(g.values.size(), QTN_FLOAT32), rank(g.values.size(), -1) {
  for (std::size_t v = 0; v < g.values.size(); ++v) {
    const graph::Value &value = g.values[v];
    dtype[v] = value.is_constant() ? value.constant.dtype() : value.dtype.value_or(QTN_FLOAT32);
    if (value.is_constant())
      rank[v] = static_cast<std::int64_t>(value.constant.rank());
    else if (value.shape)
      rank[v] = static_cast<std::int64_t>(value.shape->size());
  }
  for (const graph::Node &node : g.nodes)
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      if (node.outputs[o] != graph::kNoValue)
        dtype[static_cast<std::size_t>(node.outputs[o])] = output_dtype(node, o, dtype);

  const auto inputs = graph::declared_input_types(g, 1);
  if (!inputs) return;
  try {
    const graph::Inferred inferred = graph::infer(g, *inputs);
    for (std::size_t v = 0; v < g.values.size(); ++v) {
      dtype[v] = inferred.types[v].dtype;
      rank[v] = static_cast<std::int64_t>(inferred.types[v].shape.size());
    }
  } catch (const Error &) {
    // A batch of one may not suit the graph. Without ranks fewer nodes become integer; calibration reports what is
    // wrong.
  }
}

void require_float(const graph::Graph &g, const char *who) {
  for (const graph::Value &value : g.values)
    if (value.quantizer) fail(QTN_EUNSUPPORTED, who, ": the model is quantized already (tensor \"", value.name, "\")");
  for (const graph::Node &node : g.nodes)
    if (node.op == &ops::kDynamicQuantizeMatMul || node.op == &ops::kDynamicQuantizeLinear)
      fail(QTN_EUNSUPPORTED, who, ": the model is quantized already (node \"", node.name, "\")");
}

}  // namespace qtn::quant
