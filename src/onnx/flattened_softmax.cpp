// SPDX-License-Identifier: Apache-2.0
// Softmax or LogSoftmax over several axes at once: what they meant before opset 13. Models that came from such a file
// must still be written for a newer one.
#include "base/error.hpp"
#include "onnx/opset_forms.hpp"
#include "ops/op.hpp"

namespace qtn::onnx {

using graph::Node;
using graph::ValueId;

namespace {

constexpr const char *kFlatten = "_flatten";

bool is_flattened(const Node &node) { return node.attrs.get_int(kFlatten, 0) != 0; }

/// Ranks of all values where they can be known; -1 elsewhere.
std::vector<std::int64_t> ranks(const graph::Graph &g) {
  std::vector<std::int64_t> known(g.values.size(), -1);
  for (std::size_t v = 0; v < known.size(); ++v)
    if (g.values[v].shape) known[v] = static_cast<std::int64_t>(g.values[v].shape->size());
  try {
    if (const auto inputs = graph::declared_input_types(g, 1)) {
      const graph::Inferred inferred = graph::infer(g, *inputs);
      for (std::size_t v = 0; v < known.size(); ++v)
        known[v] = static_cast<std::int64_t>(inferred.types[v].shape.size());
    }
  } catch (const Error &) {
    // A graph that does not fit together for batch 1 is still written, in the longer form.
  }
  return known;
}

/// Flatten -> the same over the last axis -> Reshape to what it was.
void expand(graph::Graph &g, const Node &node, std::vector<Node> &nodes) {
  const ValueId x = node.inputs[0];
  const auto add = [&](const char *op, const char *suffix, std::vector<ValueId> inputs, Attrs attrs) {
    graph::Value value;
    value.name = node.name + suffix;
    value.dtype = std::string_view(op) == "Shape" ? QTN_INT64 : QTN_FLOAT32;
    const ValueId output = g.add_value(std::move(value));
    nodes.push_back({node.name + suffix, ops::find_op(op), std::move(attrs), std::move(inputs), {output}, {}});
    return output;
  };
  Attrs flatten, last;
  flatten.set("axis", node.attrs.get_int("axis", 1));
  last.set("axis", std::int64_t{-1});
  const ValueId shape = add("Shape", "_shape", {x}, {});
  const ValueId rows = add("Flatten", "_rows", {x}, std::move(flatten));
  const ValueId result = add(node.op->name, "_result", {rows}, std::move(last));
  nodes.push_back({node.name, ops::find_op("Reshape"), {}, {result, shape}, node.outputs, {}});
}

}  // namespace

void write_out_flattened_softmax(graph::Graph &g) {
  bool any = false;
  for (const Node &node : g.nodes) any = any || is_flattened(node);
  if (!any) return;
  const std::vector<std::int64_t> rank = ranks(g);
  std::vector<Node> nodes;
  for (Node &node : g.nodes) {
    if (!is_flattened(node)) {
      nodes.push_back(std::move(node));
      continue;
    }
    const std::int64_t axis = node.attrs.get_int("axis", 1), x = rank[static_cast<std::size_t>(node.inputs[0])];
    if (axis != -1 && (x < 0 || axis != x - 1)) {
      expand(g, node, nodes);
      continue;
    }
    node.attrs.erase(kFlatten);
    nodes.push_back(std::move(node));
  }
  g.nodes = std::move(nodes);
}

}  // namespace qtn::onnx
