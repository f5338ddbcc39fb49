// SPDX-License-Identifier: Apache-2.0
#include "graph/evaluate.hpp"

#include "base/error.hpp"

namespace qtn::graph {

std::vector<Tensor> evaluate(const Graph &g, std::span<const Tensor> inputs) {
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
      std::vector<Tensor> results = ops::run_quantized_op(*node.op, {node.attrs, operands, node.outputs.size()},
                                                          quantizers, node.clamp ? &*node.clamp : nullptr);
      for (std::size_t o = 0; o < node.outputs.size(); ++o)
        if (node.outputs[o] != kNoValue) set(node.outputs[o], std::move(results[o]));
    } catch (const Error &e) {
      fail(e.status(), "node \"", node.name, "\": ", e.what());
    }
    for (const ValueId v : node.inputs) {
      if (v == kNoValue) continue;
      const auto i = static_cast<std::size_t>(v);
      if (--readers_left[i] == 0 && !uses.is_output[i]) tensors[i] = Tensor();
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
