// SPDX-License-Identifier: Apache-2.0
#include "quant/recover/walk.hpp"

#include <algorithm>

namespace qtn::quant {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

std::size_t walk_bytes(const graph::Graph &g, const graph::Uses &uses, std::span<const Tensor> inputs) {
  std::vector<ops::TensorType> types;
  for (const Tensor &t : inputs) types.push_back({t.dtype(), t.shape()});
  const graph::PartlyInferred inferred = graph::infer_partly(g, types, inputs, graph::Misfit::stops);
  const auto bytes_of = [&](ValueId v) {
    const auto &type = inferred.types[static_cast<std::size_t>(v)];
    return type && !g.value(v).is_constant() ? storage_nbytes(type->dtype, element_count(type->shape)) : 0;
  };
  std::vector<std::size_t> readers_left;
  for (const auto &readers : uses.consumers) readers_left.push_back(readers.size());
  std::size_t now = 0, most = 0;
  for (const ValueId v : g.inputs) now += bytes_of(v);
  for (const Node &node : g.nodes) {
    for (const ValueId v : node.outputs)
      if (v != kNoValue) now += bytes_of(v);
    most = std::max(most, now);
    for (const ValueId v : node.inputs)
      if (v != kNoValue && --readers_left[static_cast<std::size_t>(v)] == 0 &&
          !uses.is_output[static_cast<std::size_t>(v)])
        now -= bytes_of(v);
  }
  return most;
}

Walk::Walk(NodeEngine &engine, const graph::Uses &uses, const std::vector<Tensor> &inputs)
    : engine_(&engine), g_(engine.graph()), uses_(uses), tensors_(g_.values.size()) {
  for (const auto &readers : uses.consumers) readers_left_.push_back(readers.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const QuantizerPtr &grid = g_.value(g_.inputs[i]).quantizer;
    tensors_[static_cast<std::size_t>(g_.inputs[i])] =
        grid ? dequantize(quantize(inputs[i], grid)) : inputs[i].to_contiguous();
  }
}

const Tensor &Walk::at(ValueId v) const {
  return g_.value(v).is_constant() ? g_.value(v).constant : tensors_[static_cast<std::size_t>(v)];
}

void Walk::step(std::size_t n) { step_as(n, *engine_); }

void Walk::step_as(std::size_t n, NodeEngine &engine) {
  const graph::Graph &other = engine.graph();
  const Node &node = other.nodes[n], &own = g_.nodes[n];
  std::vector<const Tensor *> operands;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId v = node.inputs[i];
    operands.push_back(v == kNoValue                  ? nullptr
                       : other.value(v).is_constant() ? &other.value(v).constant
                                                      : &at(own.inputs[i]));
  }
  std::vector<Tensor> results = engine.run(n, operands);
  for (std::size_t o = 0; o < own.outputs.size(); ++o)
    if (own.outputs[o] != kNoValue) tensors_[static_cast<std::size_t>(own.outputs[o])] = std::move(results[o]);
  for (const ValueId v : own.inputs) {
    if (v == kNoValue || g_.value(v).is_constant()) continue;
    const auto i = static_cast<std::size_t>(v);
    if (--readers_left_[i] == 0 && !uses_.is_output[i]) tensors_[i] = Tensor();
  }
}

}  // namespace qtn::quant
