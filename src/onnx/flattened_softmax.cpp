// SPDX-License-Identifier: Apache-2.0
// Softmax or LogSoftmax over several axes at once: what they meant before opset 13. Models that came from such a file
// must still be written for a newer one.
#include <algorithm>
#include <optional>

#include "onnx/opset_forms.hpp"
#include "ops/op.hpp"

namespace qtn::onnx {

using graph::Node;
using graph::ValueId;

namespace {

constexpr const char *kFlatten = "_flatten";

bool is_flattened(const Node &node) { return node.attrs.get_int(kFlatten, 0) != 0; }

/// Whether both meanings are one: rows are those of the last axis, or there are no elements in any run.
bool is_plain(const Shape &x, std::int64_t axis, bool open) {
  return x.empty() || axis == static_cast<std::int64_t>(x.size()) - 1 ||
         (!open && std::count(x.begin(), x.end(), 0) != 0);
}

/// Flatten -> the same over the last axis -> Reshape to what it was.
void expand(graph::Graph &g, const Node &node, int opset, std::vector<Node> &nodes) {
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
  Attrs zeros;  // of a batch of none
  if (opset >= 14) zeros.set("allowzero", std::int64_t{1});
  nodes.push_back({node.name, ops::find_op("Reshape"), std::move(zeros), {result, shape}, node.outputs, node.clamp});
}

}  // namespace

void write_out_flattened_softmax(graph::Graph &g, int opset) {
  bool any = false;
  for (const Node &node : g.nodes) any = any || is_flattened(node);
  if (!any) return;
  // A Squeeze may take away an axis of length 1, and leave the same axis where a batch is larger.
  const std::vector<std::optional<Shape>> shapes = shapes_at(g, 1), larger = shapes_at(g, 2);
  const bool open = graph::has_open_dimension(g);
  std::vector<Node> nodes;
  for (Node &node : g.nodes) {
    if (!is_flattened(node)) {
      nodes.push_back(std::move(node));
      continue;
    }
    const std::int64_t axis = node.attrs.get_int("axis", 1);
    bool known = false, plain = true, scalar = false;
    for (const auto *of_batch : {&shapes, &larger})
      if (const std::optional<Shape> &x = (*of_batch)[static_cast<std::size_t>(node.inputs[0])]) {
        known = true;
        plain = plain && is_plain(*x, axis, open);
        scalar = x->empty();
      }
    if (axis != -1 && !(known && plain)) {
      expand(g, node, opset, nodes);
      continue;
    }
    if (scalar) node.attrs.erase("axis");  // it has none, and what is not said is the last
    node.attrs.erase(kFlatten);
    nodes.push_back(std::move(node));
  }
  g.nodes = std::move(nodes);
}

}  // namespace qtn::onnx
