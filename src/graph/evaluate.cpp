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

/// What the results of a call will take, by the real values of operands on a grid, or by their types alone.
std::size_t result_bytes(const Node &node, std::span<const Tensor *const> operands,
                         std::span<const QuantizerPtr> quantizers) {
  std::vector<Tensor> reals(operands.size());
  std::vector<const Tensor *> pointers(operands.begin(), operands.end());
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (operands[i] && operands[i]->quantized()) {
      reals[i] =
          node.op->shapes_from.holds(i) ? dequantize(*operands[i]) : Tensor::meta(QTN_FLOAT32, operands[i]->shape());
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

namespace {

/// The values of a graph, each from its node to its last reader.
class Evaluation {
 public:
  Evaluation(const Graph &g, std::span<const Tensor> inputs, std::size_t limit)
      : g_(g), uses_(g), limit_(limit), tensors_(g.values.size()), readers_left_(g.values.size()) {
    for (std::size_t v = 0; v < g.values.size(); ++v) {
      readers_left_[v] = uses_.consumers[v].size();
      if (g.values[v].is_constant()) tensors_[v] = g.values[v].constant;
    }
    for (std::size_t i = 0; i < g.inputs.size(); ++i) {
      const QuantizerPtr &quantizer = g.value(g.inputs[i]).quantizer;
      tensors_[at(g.inputs[i])] = quantizer ? quantize(inputs[i], quantizer) : inputs[i].to_contiguous();
    }
  }

  void run(const Node &node) {
    operands_.clear();
    quantizers_.clear();
    for (const ValueId v : node.inputs) operands_.push_back(v == kNoValue ? nullptr : &tensors_[at(v)]);
    for (const ValueId v : node.outputs) quantizers_.push_back(v == kNoValue ? nullptr : g_.value(v).quantizer);
    try {
      keep(node, run_node(node, operands_, quantizers_, evaluate, held_, limit_));
    } catch (const Error &e) {
      fail(e.status(), "node \"", node.name, "\": ", e.what());
    }
    for (const ValueId v : node.inputs) {
      if (v == kNoValue) continue;
      --readers_left_[at(v)];
      drop_unread(v);
    }
    for (const ValueId v : node.outputs)
      if (v != kNoValue) drop_unread(v);
  }

  std::vector<Tensor> outputs() const {
    std::vector<Tensor> outputs;
    for (const ValueId v : g_.outputs) {
      const Tensor &t = tensors_[at(v)];
      outputs.push_back(t.quantized() ? dequantize(t) : t);
    }
    return outputs;
  }

 private:
  static std::size_t at(ValueId v) { return static_cast<std::size_t>(v); }

  void keep(const Node &node, std::vector<Tensor> results) {
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      if (node.outputs[o] == kNoValue) continue;
      held_ += results[o].nbytes();
      tensors_[at(node.outputs[o])] = std::move(results[o]);
    }
  }

  void drop_unread(ValueId v) {
    if (readers_left_[at(v)] != 0 || uses_.is_output[at(v)]) return;
    if (uses_.producer[at(v)] >= 0) held_ -= tensors_[at(v)].nbytes();
    tensors_[at(v)] = Tensor();
  }

  const Graph &g_;
  const Uses uses_;
  const std::size_t limit_;
  std::size_t held_ = 0;  ///< bytes of values that nodes made
  std::vector<Tensor> tensors_;
  std::vector<std::size_t> readers_left_;
  std::vector<const Tensor *> operands_;
  std::vector<QuantizerPtr> quantizers_;
};

}  // namespace

std::vector<Tensor> evaluate(const Graph &g, std::span<const Tensor> inputs) {
  std::size_t input_bytes = 0;
  for (const Tensor &input : inputs) input_bytes += input.nbytes();
  const std::size_t limit = run_limit(constant_bytes(g), input_bytes);
  const RunBound bound(limit);
  const Allowance memory(Limit::run_bytes, 0, limit);
  Evaluation evaluation(g, inputs, limit);
  for (const Node &node : g.nodes) evaluation.run(node);
  return evaluation.outputs();
}

}  // namespace qtn::graph
