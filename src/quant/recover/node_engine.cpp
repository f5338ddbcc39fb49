// SPDX-License-Identifier: Apache-2.0
#include "quant/recover/node_engine.hpp"

namespace qtn::quant {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

/// The node with its constants; what else it reads are inputs, one for each time. Values keep their grids.
Graph alone(const Graph &g, const Node &node, std::span<const Tensor *const> operands) {
  Graph one;
  one.opsets = g.opsets;
  Node copy = node;
  for (std::size_t i = 0; i < copy.inputs.size(); ++i) {
    ValueId &v = copy.inputs[i];
    if (v == kNoValue) continue;
    const graph::Value &value = g.value(v);
    if (value.is_constant()) {
      v = one.add_constant(value.name, value.constant);
    } else {
      v = one.add_value({value.name, operands[i]->dtype(), {}, {}, value.quantizer, {}});
      one.inputs.push_back(v);
    }
  }
  for (ValueId &v : copy.outputs)
    if (v != kNoValue)
      one.outputs.push_back(v = one.add_value({g.value(v).name, {}, {}, {}, g.value(v).quantizer, {}}));
  one.nodes.push_back(std::move(copy));
  return one;
}

}  // namespace

const runtime::Session &NodeEngine::session_of(std::size_t n, std::span<const Tensor *const> operands) {
  auto &session = sessions_[n];
  if (!session)
    session = std::make_unique<const runtime::Session>(alone(g_, g_.nodes[n], operands), runtime::SessionOptions());
  return *session;
}

std::vector<Tensor> NodeEngine::run(std::size_t n, std::span<const Tensor *const> operands) {
  const Node &node = g_.nodes[n];
  std::vector<const Tensor *> read;
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (operands[i] && !g_.value(node.inputs[i]).is_constant()) read.push_back(operands[i]);
  std::vector<Tensor> made = session_of(n, operands).run(read), results;
  for (std::size_t o = 0, next = 0; o < node.outputs.size(); ++o)
    results.push_back(node.outputs[o] == kNoValue ? Tensor() : std::move(made[next++]));
  return results;
}

}  // namespace qtn::quant
