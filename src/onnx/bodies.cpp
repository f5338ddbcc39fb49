// SPDX-License-Identifier: Apache-2.0
#include "onnx/bodies.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "graph/facts.hpp"
#include "onnx/dynamic_matmul.hpp"
#include "onnx/qdq.hpp"
#include "ops/custom.hpp"

namespace qtn::onnx {
namespace {

using graph::ValueId;

std::size_t body_count(const ops::OpDef &op) { return &op == &ops::kIf ? 2 : has_bodies(op) ? 1 : 0; }

/// Before the outputs of a body that are the node's, a Loop's body says whether to go on.
std::size_t first_output(const ops::OpDef &op) { return &op == &ops::kLoop ? 1 : 0; }

using Types = std::vector<std::optional<qdtype>>;  ///< by value id

std::size_t at(ValueId v) { return static_cast<std::size_t>(v); }

std::optional<qdtype> type_of(const graph::Value &value) {
  if (!value.is_constant()) return value.dtype;
  return value.constant.quantized() ? QTN_FLOAT32 : value.constant.dtype();
}

void settle(graph::Value &value, std::optional<qdtype> dtype) {
  if (!value.dtype && dtype && *dtype != QTN_FLOAT32) value.dtype = dtype;
}

/// Bounds and pads that were attributes, which are float32, in the type of what they meet.
void settle_operands(graph::Graph &g, graph::Node &node, qdtype dtype) {
  if (node.op != &ops::kClip && node.op != &ops::kPad) return;
  if (dtype != QTN_FLOAT64 && !is_narrow_float(dtype)) return;
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    const ValueId v = node.inputs[i];
    if (v == graph::kNoValue || !g.value(v).is_constant() || g.value(v).constant.dtype() != QTN_FLOAT32) continue;
    Attrs to;
    to.set("to", std::int64_t{dtype});
    const Tensor *inputs[] = {&g.value(v).constant};
    Tensor cast = ops::run_op(ops::kCast, ops::Call{to, inputs, 1})[0];
    node.inputs[i] = g.add_constant(g.value(v).name, std::move(cast));
  }
}

/// The bodies of a node among values of these types.
void settle_bodies(graph::Node &node, const Types &types) {
  for (auto &body : node.bodies) {
    graph::Graph settled = *body;
    const std::size_t before = node.inputs.size() - settled.inputs.size();  // the condition of an If
    for (std::size_t i = 0; i < settled.inputs.size(); ++i) {
      const ValueId outer = node.inputs[before + i];
      const bool counts = node.op == &ops::kLoop && i < 2;
      settle(settled.value(settled.inputs[i]), counts                     ? (i == 0 ? QTN_INT64 : QTN_BOOL)
                                               : outer == graph::kNoValue ? std::nullopt
                                                                          : types[at(outer)]);
    }
    settle_types(settled);
    body = std::make_shared<const graph::Graph>(std::move(settled));
  }
}

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

void settle_types(graph::Graph &g) {
  Types types;
  for (const graph::Value &value : g.values) types.push_back(type_of(value));
  for (graph::Node &node : g.nodes) {
    settle_bodies(node, types);
    const ValueId moved = graph::input_of(node, node.op->moved.first);
    const bool has_type = moved != graph::kNoValue && types[at(moved)];
    const qdtype given = has_type ? *types[at(moved)] : QTN_FLOAT32;
    settle_operands(g, node, given);
    types.resize(g.values.size(), given);
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      if (node.outputs[o] == graph::kNoValue || types[at(node.outputs[o])]) continue;
      std::optional<qdtype> &type = types[at(node.outputs[o])];
      if (!node.bodies.empty())
        type = body_dtype(node, o);
      else if (!ops::as_custom(*node.op) && has_type)
        type = node.op->output_dtype ? node.op->output_dtype(node.attrs, o, given) : given;
    }
  }
  for (const ValueId v : g.outputs) settle(g.value(v), types[at(v)]);
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

void finish(graph::Graph &g, Numerics numerics) {
  settle_constant_grids(g);
  import_qoperators(g);
  import_qdq(g, numerics);
  import_dynamic(g);
}

}  // namespace qtn::onnx
