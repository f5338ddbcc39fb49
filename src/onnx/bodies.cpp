// SPDX-License-Identifier: Apache-2.0
#include "onnx/bodies.hpp"

#include <algorithm>

#include "onnx/dynamic_products.hpp"
#include "onnx/qdq.hpp"

namespace qtn::onnx {
namespace {

using graph::ValueId;

std::size_t body_count(const ops::OpDef &op) { return &op == &ops::kIf ? 2 : has_bodies(op) ? 1 : 0; }

/// Before the outputs of a body that are the node's, a Loop's body says whether to go on.
std::size_t first_output(const ops::OpDef &op) { return &op == &ops::kLoop ? 1 : 0; }

}  // namespace

bool has_bodies(const ops::OpDef &op) { return &op == &ops::kIf || &op == &ops::kLoop || &op == &ops::kScan; }

const char *body_name(const ops::OpDef &op, std::size_t i) {
  if (&op != &ops::kIf) return "body";
  return i == 0 ? "then_branch" : "else_branch";
}

std::vector<const GraphProto *> body_protos(const NodeProto &node, const ops::OpDef &op) {
  std::vector<const GraphProto *> bodies;
  for (std::size_t i = 0; i < body_count(op); ++i) {
    const std::string_view name = body_name(op, i);
    const auto at = std::ranges::find(node.attributes, name, &AttributeProto::name);
    if (at == node.attributes.end() || !at->graph) fail(QTN_EFORMAT, "has no graph ", name);
    bodies.push_back(at->graph.get());
  }
  return bodies;
}

std::size_t join_captures(std::vector<Body> &bodies, const graph::Graph &outer) {
  std::vector<ValueId> all;
  for (const Body &body : bodies)
    for (const ValueId v : body.captured)
      if (std::ranges::find(all, v) == all.end()) all.push_back(v);
  for (Body &body : bodies) {
    std::vector<ValueId> &inputs = body.graph.inputs;
    const std::size_t own = inputs.size() - body.captured.size();
    const std::vector<ValueId> theirs(inputs.begin() + static_cast<std::ptrdiff_t>(own), inputs.end());
    inputs.resize(own);
    for (const ValueId v : all) {
      const auto at = std::ranges::find(body.captured, v);
      if (at != body.captured.end()) {
        inputs.push_back(theirs[static_cast<std::size_t>(at - body.captured.begin())]);
        continue;
      }
      graph::Value unread = outer.value(v);
      unread.name = body.graph.names.make(body.graph.values, unread.name);
      inputs.push_back(body.graph.add_value(std::move(unread)));
    }
    body.captured = all;
  }
  return all.size();
}

void check_bodies(const graph::Node &node, std::size_t own) {
  const bool branches = node.op == &ops::kIf;
  if (branches && own != 1) fail(QTN_EFORMAT, "must have 1 input, not ", own);
  // A Loop may go on without a count and without a condition.
  for (std::size_t i = node.op == &ops::kLoop ? 2 : 0; i < own; ++i)
    if (node.inputs[i] == graph::kNoValue) fail(QTN_EFORMAT, "input ", i, " is absent");
  const std::size_t outputs = node.outputs.size() + first_output(*node.op);
  for (std::size_t i = 0; i < node.bodies.size(); ++i) {
    const graph::Graph &body = *node.bodies[i];
    for (const ValueId v : body.inputs)
      if (body.value(v).shape) graph::check_size(body.value(v), *body.value(v).shape);
    const std::size_t inputs = body.inputs.size() - node.captured, wanted = branches ? 0 : own;
    if (inputs != wanted)
      fail(QTN_EFORMAT, "graph ", body_name(*node.op, i), " takes ", inputs, " inputs, not ", wanted);
    const std::size_t states = node.op == &ops::kLoop ? own - 2 : 0;
    const std::size_t least = std::max(outputs, first_output(*node.op) + states);
    if (body.outputs.size() < least || (branches && body.outputs.size() != least))
      fail(QTN_EFORMAT, "graph ", body_name(*node.op, i), " has ", body.outputs.size(), " outputs, not ", least);
  }
}

std::optional<qdtype> body_dtype(const graph::Node &node, std::size_t output) {
  std::optional<qdtype> dtype;
  for (const auto &body : node.bodies) {
    const graph::Value &value = body->value(body->outputs[first_output(*node.op) + output]);
    const std::optional<qdtype> said = value.is_constant() ? value.constant.dtype() : value.dtype;
    if (!said || (dtype && dtype != said)) return std::nullopt;
    dtype = said;
  }
  return dtype;
}

void take_list_of_one(graph::Graph &body, graph::UniqueNames &node_names) {
  if (body.inputs.empty()) return;
  const ValueId list = body.inputs[0];
  if (!body.value(list).shape || body.value(list).shape->size() != 1) return;
  graph::Value number = body.value(list), shape;
  number.name = body.names.make(body.values, number.name + "_number");
  number.shape = Shape{};
  number.symbols.clear();
  body.inputs[0] = body.add_value(std::move(number));
  shape.name = body.names.make(body.values, body.value(list).name + "_shape");
  shape.constant = Tensor::from_ints(std::vector<std::int64_t>{1});
  graph::Node node;
  node.name = node_names.make(body.value(list).name + "_Reshape");
  node.op = &ops::kReshape;
  node.inputs = {body.inputs[0], body.add_value(std::move(shape))};
  node.outputs = {list};
  body.nodes.insert(body.nodes.begin(), std::move(node));
}

void fail_at(const std::string &name, const std::string &op, const Error &e) {
  const qstatus status = e.status() == QTN_EINVAL ? QTN_EFORMAT : e.status();
  const std::string prefix = op + ": ";
  std::string_view text = e.what();
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  fail(status, "node \"", name, "\" (", op, "): ", text);
}

void finish(graph::Graph &g, Numerics numerics) {
  for (graph::Node &node : g.nodes) try {
      change_bodies(node, [&](graph::Graph &body) { finish(body, numerics); });
    } catch (const Error &e) {
      fail_at(node.name, node.op->name, e);
    }
  settle_constant_grids(g);
  import_qoperators(g);
  import_qdq(g, numerics);
  import_dynamic(g);
}

}  // namespace qtn::onnx
