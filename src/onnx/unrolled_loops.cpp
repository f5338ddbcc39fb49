// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "onnx/composing.hpp"

namespace qtn::onnx {
namespace {

constexpr std::size_t kMostUnrolled = 1 << 12;  ///< nodes of a file
constexpr std::int64_t kMostIterations = 1 << 8;

std::size_t nodes_of(const GraphProto &graph) {
  std::size_t count = 0;
  for (const NodeProto &node : graph.nodes) {
    ++count;
    for (const AttributeProto &attribute : node.attributes)
      if (attribute.graph) count += nodes_of(*attribute.graph);
  }
  return count;
}

std::size_t bytes_of(const Names &names) {
  return std::accumulate(names.begin(), names.end(), names.size() * sizeof names[0],
                         [](std::size_t sum, const std::string &name) { return sum + name.size(); });
}

std::size_t bytes_of(const std::vector<ValueInfo> &infos) {
  return std::accumulate(
      infos.begin(), infos.end(), infos.size() * sizeof infos[0],
      [](std::size_t sum, const ValueInfo &info) { return sum + info.name.size() + bytes_of(info.symbols); });
}

/// What a copy of a graph takes, about; initializers stay where they are.
std::size_t bytes_of(const GraphProto &graph) {
  std::size_t bytes = sizeof graph + graph.initializers.size() * sizeof graph.initializers[0] + bytes_of(graph.inputs) +
                      bytes_of(graph.outputs) + bytes_of(graph.values);
  for (const NodeProto &node : graph.nodes) {
    bytes += sizeof node + node.name.size() + bytes_of(node.inputs) + bytes_of(node.outputs);
    for (const AttributeProto &attribute : node.attributes)
      bytes += sizeof attribute + (attribute.graph ? bytes_of(*attribute.graph) : 0);
  }
  return bytes;
}

bool is_true(const Composing &c, const std::string &name) {
  const std::optional<Tensor> t = c.constant(name);
  return t && t->dtype() == QTN_BOOL && t->count() == 1 && t->to_contiguous().as<bool>()[0];
}

/// Whether every iteration lets the next one begin. `yes`: a constant.
bool goes_on(Composing &c, const std::string &yes, const GraphProto &body) {
  if (!c.in(1).empty() && !is_true(c, c.in(1))) return false;
  Scope inner;
  inner.outer = &c.scope();
  inner.givens.insert({body.inputs[1].name, c.scope().givens.at(yes)});
  for (const NodeProto &node : body.nodes) note_given(node, inner, c.opset());
  return is_true(Composing(c, inner), body.outputs[0].name);
}

/// How many iterations there are, where these may become nodes.
std::optional<std::int64_t> iterations(Composing &c, const GraphProto &body) {
  const Names &operands = c.node().inputs;
  const std::size_t states = c.node().outputs.size();  // where no output is of all iterations
  if (operands.size() != states + 2 || body.inputs.size() != states + 2 || body.outputs.size() != states + 1)
    return std::nullopt;
  if (std::none_of(operands.begin() + 2, operands.end(), [&](const auto &name) { return c.sequence(name); }))
    return std::nullopt;
  const std::optional<std::int64_t> count = c.number(c.in(0));
  const std::size_t left =
      std::min((kMostUnrolled - c.made().unrolled) / (nodes_of(body) + 1), c.bytes_left() / bytes_of(body));
  if (!count || *count < 0 || *count > std::min(kMostIterations, static_cast<std::int64_t>(left))) return std::nullopt;
  return count;
}

}  // namespace

bool unroll(Composing &c) {
  const std::shared_ptr<const GraphProto> body = c.graph("body");
  const std::optional<std::int64_t> count = body ? iterations(c, *body) : std::nullopt;
  if (!count) return false;
  const std::string yes = c.make_bool(true, "");
  if (!goes_on(c, yes, *body)) return false;
  c.made().unrolled += static_cast<std::size_t>(*count) * (nodes_of(*body) + 1);
  c.made().bytes += static_cast<std::size_t>(*count) * bytes_of(*body);
  const std::optional<Shape> &number = body->inputs[0].shape;
  Names states(c.node().inputs.begin() + 2, c.node().inputs.end());
  Renamed names = initializers_of(c, *body);
  names[body->inputs[1].name] = yes;
  for (std::int64_t i = 0; i < *count; ++i) {
    names[body->inputs[0].name] = number && number->size() == 1 ? c.make_ints({i}) : c.make_int(i);
    for (std::size_t k = 0; k < states.size(); ++k) names[body->inputs[2 + k].name] = states[k];
    states = inlined(c, body, names);
    states.erase(states.begin());  // the condition
  }
  for (std::size_t k = 0; k < states.size(); ++k)
    if (!c.out(k).empty()) c.visit(identity(states[k], c.out(k)));
  return true;
}

}  // namespace qtn::onnx
