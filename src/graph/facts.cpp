// SPDX-License-Identifier: Apache-2.0
#include "graph/facts.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "graph/integer.hpp"
#include "graph/open_inputs.hpp"
#include "graph/varying_ranks.hpp"

namespace qtn::graph {
namespace {

/// From types of inputs alone, so that a graph of unknown shapes has types too.
qdtype output_dtype(const Node &node, std::size_t output, const std::vector<qdtype> &dtype) {
  const ValueId first = input_of(node, node.op->moved.first);
  const qdtype moved = first == kNoValue ? QTN_FLOAT32 : dtype[static_cast<std::size_t>(first)];
  return ops::made_dtype(*node.op, node.attrs, output, moved);
}

/// By value id. A batch of one, or the trial, may not suit the graph: where no other batch does, what nodes make whose
/// shapes do not fit is not known. Without ranks fewer nodes become integer; calibration reports what is wrong.
std::vector<std::optional<ops::TensorType>> trial_types(const Graph &g) {
  constexpr std::int64_t kLength = 7;  // which is no other dimension's length by chance
  const auto batch_of_one = declared_input_types(g, 1),
             inputs = batch_of_one ? batch_of_one : trial_input_types(g, kLength);
  if (!inputs) return std::vector<std::optional<ops::TensorType>>(g.values.size());
  PartlyInferred inferred = try_types(g, *inputs, Misfit::stops);
  if (!inferred.misfits || !batch_of_one || !has_open_dimension(g)) return std::move(inferred.types);
  for (const std::int64_t batch : kOtherBatches) {
    try {
      return try_types(g, *declared_input_types(g, batch)).types;
    } catch (const Error &) {
      // Nor does this one.
    }
  }
  return std::move(inferred.types);
}

}  // namespace

Facts::Facts(const Graph &g)
    : uses(g), dtype(g.values.size(), QTN_FLOAT32), rank(g.values.size(), -1), types(g.values.size()) {
  for (std::size_t v = 0; v < g.values.size(); ++v) {
    const Value &value = g.values[v];
    // Integers on a grid are the numbers that they stand for.
    if (!value.is_constant())
      dtype[v] = value.dtype.value_or(QTN_FLOAT32);
    else
      dtype[v] = value.constant.quantized() ? QTN_FLOAT32 : value.constant.dtype();
    if (value.is_constant())
      rank[v] = static_cast<std::int64_t>(value.constant.rank());
    else if (value.shape)
      rank[v] = static_cast<std::int64_t>(value.shape->size());
  }
  for (const Node &node : g.nodes)
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      if (node.outputs[o] == kNoValue || !node.bodies.empty()) continue;
      if (ops::as_custom(*node.op) && g.value(node.outputs[o]).dtype) continue;  // what the file says is all there is
      dtype[static_cast<std::size_t>(node.outputs[o])] = output_dtype(node, o, dtype);
    }

  open = has_open_dimension(g);
  types = trial_types(g);
  for (std::size_t v = 0; v < g.values.size(); ++v) {
    if (!types[v]) continue;
    dtype[v] = types[v]->dtype;
    rank[v] = static_cast<std::int64_t>(types[v]->shape.size());
  }
  if (!open) return;
  const std::vector<bool> varying = varying_ranks(g);
  for (std::size_t v = 0; v < g.values.size(); ++v)
    if (varying[v]) rank[v] = -1;
}

void require_float(const Graph &g, const char *who) {
  for (const Value &value : g.values)
    if (value.quantizer) fail(QTN_EUNSUPPORTED, who, ": the model is quantized already (tensor \"", value.name, "\")");
  for (const Node &node : g.nodes)
    if (is_dynamic_product(node) || node.op == &ops::kDynamicQuantizeLinear)
      fail(QTN_EUNSUPPORTED, who, ": the model is quantized already (node \"", node.name, "\")");
}

}  // namespace qtn::graph
