// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "base/limits.hpp"
#include "base/size.hpp"
#include "graph/budget.hpp"
#include "graph/graph.hpp"

namespace qtn::graph {
namespace {

/// Strides and sizes of what no machine holds would wrap.
void check_size(const Value &input, const ops::TensorType &type) {
  Size bytes = 8;
  for (const std::int64_t dim : type.shape) {
    if (dim > 1 && static_cast<std::size_t>(dim) > Size::kLimit / bytes.value())
      fail(QTN_ESHAPE, "input \"", input.name, "\" of ", to_string(type.shape), " is too large");
    bytes = bytes * std::max<std::int64_t>(1, dim);
  }
  check_limit(Limit::tensor_elements, static_cast<std::size_t>(element_count(type.shape)));
}

}  // namespace

bool may_say_shapes(const ops::TensorType &input) {
  const std::int64_t most = is_floating(input.dtype) ? static_cast<std::int64_t>(kMaxRank) : 64;
  return input.shape.size() <= 1 && element_count(input.shape) <= most;
}

PartlyInferred infer_partly(const Graph &g, std::span<const ops::TensorType> inputs, std::span<const Tensor> values,
                            Misfit misfit) {
  if (inputs.size() != g.inputs.size())
    fail(QTN_EINVAL, "model takes ", g.inputs.size(), " inputs, not ", inputs.size());
  std::vector<Tensor> known(g.values.size());
  std::vector<bool> is_known(g.values.size(), false);
  // What is on a grid is computed by runs: in integers it may round otherwise than floats do on their way to the grid.
  const auto learn = [&](ValueId v, const Tensor &t, qdtype dtype) {
    known[static_cast<std::size_t>(v)] = t.has_data() && !g.value(v).quantizer ? t : Tensor::meta(dtype, t.shape());
    is_known[static_cast<std::size_t>(v)] = true;
  };
  for (std::size_t v = 0; v < g.values.size(); ++v) {
    const Value &value = g.values[v];
    if (value.is_constant())
      learn(static_cast<ValueId>(v), value.constant, value.quantizer ? QTN_FLOAT32 : value.constant.dtype());
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) check_size(g.value(g.inputs[i]), inputs[i]);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    learn(g.inputs[i],
          i < values.size() && values[i].has_data() ? values[i] : Tensor::meta(inputs[i].dtype, inputs[i].shape),
          inputs[i].dtype);

  // What follows from shapes alone is small, except for maps of the pixels of large inputs.
  FoldBudget budget(std::size_t{12} << 20);
  PartlyInferred result;
  std::vector<const Tensor *> operands;
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    const Node &node = g.nodes[n];
    operands.clear();
    bool constant = true, readable = true;
    for (const ValueId v : node.inputs) {
      operands.push_back(v == kNoValue ? nullptr : &known[static_cast<std::size_t>(v)]);
      readable = readable && (v == kNoValue || is_known[static_cast<std::size_t>(v)]);
      constant = constant && (v == kNoValue || operands.back()->has_data());
    }
    if (!readable) continue;
    const ops::Call call{node.attrs, operands, node.outputs.size()};
    try {
      if (node.op->make && constant && !budget.take(node, operands))
        throw NotKnown(cat(node.op->name, ": too much to find before a run"));
      const std::vector<ops::TensorType> types = ops::infer_op(*node.op, call);
      for (const ops::TensorType &type : types)
        check_limit(Limit::tensor_elements, static_cast<std::size_t>(element_count(type.shape)));
      // Shape reads no data, so its result is known even where its input is not.
      const bool fold = (constant || node.op->reads_shapes) && !node.clamp && !ops::as_custom(*node.op) &&
                        budget.take(node, operands, types);
      std::vector<Tensor> results;
      if (fold) results = ops::run_op(*node.op, call);
      for (std::size_t o = 0; o < node.outputs.size(); ++o)
        if (node.outputs[o] != kNoValue)
          learn(node.outputs[o], fold ? results[o] : Tensor::meta(types[o].dtype, types[o].shape), types[o].dtype);
    } catch (const NotKnown &e) {
      if (result.stops.empty()) result.why = cat("node \"", node.name, "\": ", e.what());
      result.stops.push_back(n);
    } catch (const Error &e) {
      if (misfit == Misfit::throws) fail(e.status(), "node \"", node.name, "\": ", e.what());
      result.stops.push_back(n);
    }
  }
  result.types.resize(known.size());
  result.constants.resize(known.size());
  for (std::size_t v = 0; v < known.size(); ++v) {
    if (is_known[v]) result.types[v] = {known[v].dtype(), known[v].shape()};
    if (g.values[v].is_constant())
      result.constants[v] = g.values[v].constant;
    else if (known[v].has_data())
      result.constants[v] = known[v];
  }
  return result;
}

Inferred infer(const Graph &g, std::span<const ops::TensorType> inputs, std::span<const Tensor> values) {
  PartlyInferred part = infer_partly(g, inputs, values);
  if (!part.stops.empty()) throw NotKnown(part.why);
  Inferred result;
  for (const auto &type : part.types) result.types.push_back(type.value_or(ops::TensorType{QTN_FLOAT32, {}}));
  result.constants = std::move(part.constants);
  return result;
}

}  // namespace qtn::graph
