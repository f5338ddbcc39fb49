// SPDX-License-Identifier: Apache-2.0
// What nodes of old opsets say by the ranks of their operands, in shapes of today.
#include "onnx/composing.hpp"
#include "ops/common/epsilon.hpp"
#include "ops/op.hpp"

namespace qtn::onnx {
namespace {

/// b with as many axes of one place behind its own as let it begin at that axis of a.
std::string begun_at(Composing &c, const std::string &a, const std::string &b, std::int64_t axis) {
  constexpr auto kMost = static_cast<std::int64_t>(kMaxRank);
  if (axis < -kMost || axis > kMost) c.refuse("axis ", axis, " is outside of every tensor");
  const std::optional<Shape> from = c.shape(a), of = c.shape(b);
  if (of && (from || axis < 0)) {
    const auto rank = static_cast<std::int64_t>(of->size());
    const std::int64_t behind = axis < 0 ? -axis - rank : static_cast<std::int64_t>(from->size()) - axis - rank;
    if (behind < 0) c.refuse("an operand of rank ", rank, " reaches beyond the other one from axis ", axis);
    std::vector<std::int64_t> axes;
    for (std::int64_t i = 0; i < behind; ++i) axes.push_back(rank + i);
    return axes.empty() ? b : c.one("Unsqueeze", {b, c.make_ints(axes)});
  }
  const std::string from_axis =
      axis < 0 ? c.make_ints({-axis}) : c.formula("Shape a;Shape A;Sub B b", {a, c.make_ints({axis})});
  return c.formula("Shape a;Shape A;Sub b B;Expand 1 C;Concat A D axis=0;Reshape a E", {b, from_axis});
}

/// Until opset 6 the second operand could begin at any axis of the first.
bool broadcast_from_axis(Composing &c) {
  const Attrs attrs = c.attrs();
  if (!attrs.has("axis") || attrs.get_int("broadcast", 0) == 0) return false;
  const std::string b = begun_at(c, c.in(0), c.in(1), attrs.get_int("axis", 0));
  c.one(c.node().op.c_str(), {c.in(0), b}, without(attrs, {"axis", "broadcast", "consumed_inputs"}), c.out(0));
  return true;
}

/// Until opset 6 slopes were those of channels, or one for all.
bool slopes_of_channels(Composing &c) {
  const std::optional<Shape> slope = c.shape(c.in(1));
  if (slope && (slope->size() != 1 || (*slope)[0] == 1)) return false;
  c.one("PRelu", {c.in(0), begun_at(c, c.in(0), c.in(1), 1)}, {}, c.out(0));
  return true;
}

/// Until opset 5 one axis was repeated, and inputs said which and how often.
bool tile_one_axis(Composing &c) {
  if (c.node().inputs.size() != 3) return false;
  c.formula(
      "Shape a;Shape A;Expand 1 B;Cast c to=7;Reshape D [1];Cast b to=7;Reshape F [1];ScatterElements C E G;Tile a H",
      {c.in(0), c.in(1), c.in(2)}, c.out(0));
  return true;
}

/// Until opset 8 each place of a sample could have statistics of its own.
bool normalize_places(Composing &c) {
  const Attrs attrs = c.attrs();
  if (attrs.get_int("spatial", 1) != 0) return false;
  if (c.node().outputs.size() > 1) c.refuse("spatial 0 is not supported in training mode");
  const auto epsilon = static_cast<float>(attrs.get_float("epsilon", ops::kDefaultEpsilon));
  c.formula("Add e f;Sqrt A;Div b B;Sub a d;Mul D C;Add E c",
            {c.in(0), c.in(1), c.in(2), c.in(3), c.in(4), c.number_like(epsilon, c.in(4))}, c.out(0));
  return true;
}

/// Until opset 8 operands had an axis for samples in front: a Scan over samples, each of which is a Scan of today.
bool scan_samples(Composing &c) {
  const NodeProto &node = c.node();
  const auto body = std::ranges::find(node.attributes, "body", &AttributeProto::name);
  const Attrs attrs = c.attrs();
  if (!c.in(0).empty()) c.refuse("sequence_lens is not supported");
  if (node.inputs.size() < 2 || body == node.attributes.end() || !body->graph) return false;
  const Names operands(node.inputs.begin() + 1, node.inputs.end());
  const auto fresh = [&](std::size_t count, const char *what) {
    Names names(count);
    for (std::string &name : names) name = c.new_name(what);
    return names;
  };
  const Names inputs = fresh(operands.size(), "sample"), made = fresh(body->graph->outputs.size(), "of_sample");
  Attrs inner = with("num_scan_inputs", attrs.get_int("num_scan_inputs", 1));
  if (attrs.has("directions")) inner.set("scan_input_directions", attrs.get_ints("directions"));
  GraphProto sample;
  for (const std::string &name : inputs) sample.inputs.push_back(tensor_named(name));
  for (const std::string &name : made) sample.outputs.push_back(tensor_named(name));
  sample.nodes.push_back(
      node_with_body("Scan", node.name.empty() ? "" : node.name + "/sample", inputs, made, body->graph, inner));
  Names outputs = node.outputs;
  outputs.resize(made.size());
  c.visit(node_with_body("Scan", node.name, operands, outputs, std::make_shared<GraphProto>(std::move(sample)),
                         with("num_scan_inputs", static_cast<std::int64_t>(operands.size()))));
  return true;
}

}  // namespace

const std::vector<ComposedRule> kOldestRules{{"", "Add", broadcast_from_axis, 7},
                                             {"", "And", broadcast_from_axis, 7},
                                             {"", "Div", broadcast_from_axis, 7},
                                             {"", "Equal", broadcast_from_axis, 7},
                                             {"", "Greater", broadcast_from_axis, 7},
                                             {"", "Less", broadcast_from_axis, 7},
                                             {"", "Mul", broadcast_from_axis, 7},
                                             {"", "Or", broadcast_from_axis, 7},
                                             {"", "Pow", broadcast_from_axis, 7},
                                             {"", "Sub", broadcast_from_axis, 7},
                                             {"", "Xor", broadcast_from_axis, 7},
                                             {"", "PRelu", slopes_of_channels, 7},
                                             {"", "Scan", scan_samples, 9},
                                             {"", "Tile", tile_one_axis, 6},
                                             {"", "BatchNormalization", normalize_places, 9}};

}  // namespace qtn::onnx
