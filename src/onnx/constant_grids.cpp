// SPDX-License-Identifier: Apache-2.0
// PyTorch's exporter computes scales, zero points and biases of quantized layers by nodes on constants, and casts
// integers to the type that they have.
#include <algorithm>

#include "base/error.hpp"
#include "graph/budget.hpp"
#include "onnx/qdq.hpp"
#include "ops/custom.hpp"

namespace qtn::onnx {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

namespace {

std::size_t at(ValueId v) { return static_cast<std::size_t>(v); }

/// Registered operators are a program's to run, and bodies need a run.
bool may_be_computed(const Node &node) { return !ops::as_custom(*node.op) && node.bodies.empty(); }

bool is_pair(const Node &node) { return node.op == &ops::kQuantizeLinear || node.op == &ops::kDequantizeLinear; }

/// By value: whether it follows from constants alone, without quantization on the way.
std::vector<bool> followers_of_constants(const graph::Graph &g) {
  std::vector<bool> follows(g.values.size(), false);
  for (std::size_t v = 0; v < follows.size(); ++v) follows[v] = g.values[v].is_constant();
  for (const Node &node : g.nodes) {
    const bool all =
        std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return v == kNoValue || follows[at(v)]; });
    for (const ValueId v : node.outputs)
      if (v != kNoValue && all && !is_pair(node) && may_be_computed(node)) follows[at(v)] = true;
  }
  return follows;
}

/// By node: whether a QuantizeLinear or DequantizeLinear node reads what it makes of constants, or a node that does.
std::vector<bool> makers_for_pairs(const graph::Graph &g) {
  const std::vector<bool> follows = followers_of_constants(g);
  std::vector<bool> wanted(g.values.size(), false), makers(g.nodes.size(), false);
  for (std::size_t n = g.nodes.size(); n-- > 0;) {
    const Node &node = g.nodes[n];
    makers[n] = !is_pair(node) && may_be_computed(node) &&
                std::any_of(node.outputs.begin(), node.outputs.end(),
                            [&](ValueId v) { return v != kNoValue && wanted[at(v)]; });
    for (const ValueId v : node.inputs)
      if (v != kNoValue && follows[at(v)] && (makers[n] || is_pair(node))) wanted[at(v)] = true;
  }
  return makers;
}

void compute(graph::Graph &g, const Node &node, graph::FoldBudget &budget) {
  std::vector<const Tensor *> operands;
  for (const ValueId v : node.inputs) operands.push_back(v == kNoValue ? nullptr : &g.value(v).constant);
  try {
    const ops::Call call{node.attrs, operands, node.outputs.size()};
    if (node.op->make ? !budget.take(node, operands) : !budget.take(node, operands, ops::infer_op(*node.op, call)))
      fail(QTN_EUNSUPPORTED, "constants that quantization follows from take too much memory or time to compute");
    const std::vector<Tensor> results = ops::run_op(*node.op, call);
    for (std::size_t o = 0; o < results.size(); ++o) {
      if (node.outputs[o] == kNoValue) continue;
      graph::Value &value = g.value(node.outputs[o]);
      value.constant = results[o].to_contiguous();
      value.dtype = results[o].dtype();
      value.shape = results[o].shape();
    }
  } catch (const Error &e) {
    fail(e.status(), "node \"", node.name, "\": ", e.what());
  }
}

/// Lets readers of a Cast to the type that QuantizeLinear gives anyway read the integers themselves.
void skip_idle_casts(graph::Graph &g) {
  const graph::Uses uses(g);
  for (const Node &cast : g.nodes) {
    if (cast.op != &ops::kCast) continue;
    const ValueId x = cast.inputs[0], y = cast.outputs[0];
    const std::int32_t maker = uses.producer[at(x)];
    if (maker < 0 || g.nodes[at(maker)].op != &ops::kQuantizeLinear || uses.is_output[at(y)]) continue;
    const Node &q = g.nodes[at(maker)];
    if (q.inputs.size() < 3 || q.inputs[2] == kNoValue || !g.value(q.inputs[2]).is_constant()) continue;
    if (g.value(q.inputs[2]).constant.dtype() != cast.attrs.get_int("to", 0)) continue;
    for (const std::int32_t reader : uses.consumers[at(y)])
      std::replace(g.nodes[at(reader)].inputs.begin(), g.nodes[at(reader)].inputs.end(), y, x);
  }
}

}  // namespace

void settle_constant_grids(graph::Graph &g) {
  const std::vector<bool> makers = makers_for_pairs(g);
  graph::FoldBudget budget(graph::constant_bytes(g));
  for (std::size_t n = 0; n < makers.size(); ++n)
    if (makers[n]) compute(g, g.nodes[n], budget);
  std::size_t n = 0;
  std::erase_if(g.nodes, [&](const Node &) { return makers[n++]; });
  skip_idle_casts(g);
  graph::remove_dead(g);
}

}  // namespace qtn::onnx
