// SPDX-License-Identifier: Apache-2.0
#include "quant/graph_builder.hpp"

namespace qtn::test {

GraphBuilder &GraphBuilder::input(const std::string &name, const Shape &shape, qdtype dtype) {
  const graph::ValueId v = id(name);
  g_.value(v).dtype = dtype;
  g_.value(v).shape = shape;
  g_.inputs.push_back(v);
  return *this;
}

GraphBuilder &GraphBuilder::constant(const std::string &name, const Tensor &tensor) {
  graph::Value &value = g_.value(id(name));
  value.constant = tensor;
  value.dtype = tensor.dtype();
  value.shape = tensor.shape();
  return *this;
}

GraphBuilder &GraphBuilder::node(const std::string &op, const std::string &name, const std::vector<std::string> &inputs,
                                 const std::vector<std::string> &outputs, const Attrs &node_attrs) {
  graph::Node node{name, ops::find_op(op), node_attrs, {}, {}, std::nullopt};
  if (!node.op) fail_test("no operator ", op);
  for (const std::string &input : inputs) node.inputs.push_back(input.empty() ? graph::kNoValue : id(input));
  for (const std::string &output : outputs) node.outputs.push_back(id(output));
  g_.nodes.push_back(node);
  return *this;
}

GraphBuilder &GraphBuilder::conv(const std::string &name, const std::string &x, const std::string &y, std::int64_t in,
                                 std::int64_t out) {
  constant(name + ".weight", ramp({out, in, 1, 1}));
  return node("Conv", name, {x, name + ".weight"}, {y});
}

graph::Graph GraphBuilder::build(const std::vector<std::string> &outputs) {
  for (const std::string &output : outputs) g_.outputs.push_back(id(output));
  return g_;
}

Tensor GraphBuilder::ramp(const Shape &shape) {
  Tensor t(QTN_FLOAT32, shape);
  for (std::int64_t i = 0; i < t.count(); ++i) t.as<float>()[i] = static_cast<float>((i * 37 + 11) % 101 - 50) / 50.0f;
  return t;
}

graph::ValueId GraphBuilder::id(const std::string &name) {
  const auto known = ids_.find(name);
  if (known != ids_.end()) return known->second;
  graph::Value value;
  value.name = name;
  return ids_[name] = g_.add_value(std::move(value));
}

Names quantized_values(const quant::PreparedModel &p) {
  Names names;
  for (std::size_t v = 0; v < p.graph.values.size(); ++v)
    if (p.placement.group[v] >= 0) names.insert(p.graph.values[v].name);
  return names;
}

Names integer_nodes(const quant::PreparedModel &p) {
  Names names;
  for (std::size_t n = 0; n < p.graph.nodes.size(); ++n)
    if (p.placement.nodes[n].integer) names.insert(p.graph.nodes[n].name);
  return names;
}

void expect_names(const Names &got, const Names &want) {
  const auto joined = [](const Names &names) {
    std::string text;
    for (const std::string &name : names) text += " " + name;
    return text;
  };
  if (got != want) fail_test("got", joined(got), "; want", joined(want));
}

const graph::Value &value_named(const graph::Graph &g, const std::string &name) {
  for (const graph::Value &value : g.values)
    if (value.name == name) return value;
  fail_test("no value ", name);
  return g.values[0];
}

const graph::Node &node_named(const graph::Graph &g, const std::string &name) {
  for (const graph::Node &node : g.nodes)
    if (node.name == name) return node;
  fail_test("no node ", name);
  return g.nodes[0];
}

}  // namespace qtn::test
