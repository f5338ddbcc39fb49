// SPDX-License-Identifier: Apache-2.0
#include "graph/evaluate.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/limits.hpp"
#include "base/size.hpp"
#include "graph/budget.hpp"
#include "graph/control.hpp"

namespace qtn::graph {
namespace {

/// What the results of a call will take: the types of operands on a grid are those of their real values.
std::size_t result_bytes(const Node &node, std::span<const Tensor *const> operands,
                         std::span<const QuantizerPtr> quantizers) {
  std::vector<Tensor> reals(operands.size());
  std::vector<const Tensor *> pointers(operands.begin(), operands.end());
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (operands[i] && operands[i]->quantized()) {
      reals[i] = Tensor::meta(QTN_FLOAT32, operands[i]->shape());
      pointers[i] = &reals[i];
    }
  const auto types = ops::infer_op(*node.op, {node.attrs, pointers, node.outputs.size()});
  Size bytes = 0;
  for (std::size_t i = 0; i < types.size(); ++i)
    bytes =
        bytes + storage_nbytes(quantizers[i] ? quantizers[i]->dtype() : types[i].dtype, element_count(types[i].shape));
  return bytes.value();
}

}  // namespace

std::vector<Tensor> run_node(const Node &node, std::span<const Tensor *const> operands,
                             std::span<const QuantizerPtr> quantizers, const RunBody &run_body, std::size_t held,
                             std::size_t limit) {
  std::vector<Tensor> results;
  if (node.bodies.empty()) {
    // What finds out how large its results are must have found them first; they are no larger than what it reads.
    if (!node.op->make) check_run(held + result_bytes(node, operands, quantizers), limit);
    results = ops::run_quantized_op(*node.op, {node.attrs, operands, node.outputs.size()}, quantizers,
                                    node.clamp ? &*node.clamp : nullptr);
    if (!node.op->make) return results;
  } else {
    const RunBound rest(limit - std::min(limit, held));
    results = run_control(node, operands, run_body);
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      if (quantizers[o]) results[o] = quantize(results[o], quantizers[o]);
  }
  std::size_t bytes = held;
  for (const Tensor &result : results) bytes += result.nbytes();
  check_run(bytes, limit);
  return results;
}

std::vector<Tensor> evaluate(const Graph &g, std::span<const Tensor> inputs) {
  std::size_t input_bytes = 0, held = 0;
  for (const Tensor &input : inputs) input_bytes += input.nbytes();
  const std::size_t limit = run_limit(constant_bytes(g), input_bytes);
  const RunBound bound(limit);
  const Allowance memory(Limit::run_bytes, 0, limit);
  const Uses uses(g);
  std::vector<Tensor> tensors(g.values.size());
  std::vector<std::size_t> readers_left(g.values.size());
  for (std::size_t v = 0; v < g.values.size(); ++v) {
    readers_left[v] = uses.consumers[v].size();
    if (g.values[v].is_constant()) tensors[v] = g.values[v].constant;
  }
  const auto set = [&](ValueId id, Tensor t) { tensors[static_cast<std::size_t>(id)] = std::move(t); };
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    const QuantizerPtr &quantizer = g.value(g.inputs[i]).quantizer;
    set(g.inputs[i], quantizer ? quantize(inputs[i], quantizer) : inputs[i].to_contiguous());
  }
  std::vector<const Tensor *> operands;
  std::vector<QuantizerPtr> quantizers;
  for (const Node &node : g.nodes) {
    operands.clear();
    quantizers.clear();
    for (const ValueId v : node.inputs)
      operands.push_back(v == kNoValue ? nullptr : &tensors[static_cast<std::size_t>(v)]);
    for (const ValueId v : node.outputs) quantizers.push_back(v == kNoValue ? nullptr : g.value(v).quantizer);
    try {
      std::vector<Tensor> results = run_node(node, operands, quantizers, evaluate, held, limit);
      for (std::size_t o = 0; o < node.outputs.size(); ++o) held += results[o].nbytes();
      for (std::size_t o = 0; o < node.outputs.size(); ++o)
        if (node.outputs[o] != kNoValue)
          set(node.outputs[o], std::move(results[o]));
        else
          held -= results[o].nbytes();
    } catch (const Error &e) {
      fail(e.status(), "node \"", node.name, "\": ", e.what());
    }
    for (const ValueId v : node.inputs) {
      if (v == kNoValue) continue;
      const auto i = static_cast<std::size_t>(v);
      if (--readers_left[i] != 0 || uses.is_output[i]) continue;
      if (uses.producer[i] >= 0) held -= tensors[i].nbytes();
      tensors[i] = Tensor();
    }
    for (const ValueId v : node.outputs) {  // what no node reads
      if (v == kNoValue || readers_left[static_cast<std::size_t>(v)] != 0 ||
          uses.is_output[static_cast<std::size_t>(v)])
        continue;
      held -= tensors[static_cast<std::size_t>(v)].nbytes();
      tensors[static_cast<std::size_t>(v)] = Tensor();
    }
  }
  std::vector<Tensor> outputs;
  for (const ValueId v : g.outputs) {
    const Tensor &t = tensors[static_cast<std::size_t>(v)];
    outputs.push_back(t.quantized() ? dequantize(t) : t);
  }
  return outputs;
}

}  // namespace qtn::graph
