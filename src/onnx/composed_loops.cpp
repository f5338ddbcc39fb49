// SPDX-License-Identifier: Apache-2.0
// Sequences that a loop grows: what each iteration puts at the end is an output of all iterations, side by side.
#include <algorithm>

#include "onnx/composing.hpp"

namespace qtn::onnx {
namespace {

NodeProto identity(std::string from, std::string to) {
  NodeProto node;
  node.op = "Identity";
  node.inputs = {std::move(from)};
  node.outputs = {std::move(to)};
  return node;
}

/// How many nodes read a value, themselves or in their graphs.
std::ptrdiff_t readers(const GraphProto &graph, const std::string &name) {
  return std::ranges::count_if(graph.nodes, [&](const NodeProto &node) {
    return std::ranges::find(node.inputs, name) != node.inputs.end() ||
           std::ranges::any_of(node.attributes, [&](const AttributeProto &attribute) {
             return attribute.graph && readers(*attribute.graph, name) > 0;
           });
  });
}

/// The node of a body that puts an item at the end of its input, and makes its output of it, where nothing else reads
/// either; or the end.
std::vector<NodeProto>::iterator only_insertion(GraphProto &body, const std::string &input, const std::string &output) {
  const auto insertion = std::ranges::find_if(body.nodes, [&](const NodeProto &node) {
    return node.op == "SequenceInsert" && node.domain.empty() && node.inputs.size() >= 2 && node.inputs[0] == input &&
           (node.inputs.size() == 2 || node.inputs[2].empty()) && node.outputs == Names{output};
  });
  return readers(body, input) == 1 && readers(body, output) == 0 ? insertion : body.nodes.end();
}

/// Input `k` of a body begins as an empty sequence, and every iteration adds to it. Output: a new one, of the items.
bool collects(GraphProto &body, std::size_t k, const std::string &items) {
  if (k >= body.inputs.size() || k > body.outputs.size()) return false;
  const auto insertion = only_insertion(body, body.inputs[k].name, body.outputs[k - 1].name);
  if (insertion == body.nodes.end()) return false;
  *insertion = identity(insertion->inputs[1], items);
  body.inputs.erase(body.inputs.begin() + static_cast<std::ptrdiff_t>(k));
  body.outputs.erase(body.outputs.begin() + static_cast<std::ptrdiff_t>(k - 1));
  body.outputs.push_back({items, true, 0, std::nullopt});
  return true;
}

bool grow_sequences(Composing &c) {
  const auto is_empty = [&](const std::string &name) {
    const Sequence *s = c.sequence(name);
    return s && s->whole.empty() && s->items.empty();
  };
  if (std::ranges::none_of(c.node().inputs, is_empty)) return false;
  NodeProto loop = c.node();
  const auto body = std::ranges::find(loop.attributes, "body", &AttributeProto::name);
  if (body == loop.attributes.end() || !body->graph || loop.outputs.size() + 1 != body->graph->outputs.size())
    return false;
  body->graph = std::make_shared<GraphProto>(*body->graph);
  bool any = false;
  for (std::size_t k = loop.inputs.size(); k-- > 2;) {  // behind the number of iterations and the condition
    if (!is_empty(loop.inputs[k]) || !collects(*body->graph, k, c.new_name("item"))) continue;
    const std::string result = loop.outputs[k - 2];
    loop.inputs.erase(loop.inputs.begin() + static_cast<std::ptrdiff_t>(k));
    loop.outputs.erase(loop.outputs.begin() + static_cast<std::ptrdiff_t>(k - 2));
    loop.outputs.push_back(c.new_name("items"));
    c.scope().sequences[result] = {{}, loop.outputs.back(), 0, 1, false};
    any = true;
  }
  if (any) c.append(std::move(loop));
  return any;
}

}  // namespace

NodeProto scan_node(std::string name, Names inputs, Names outputs, std::shared_ptr<GraphProto> body,
                    const Attrs &attrs) {
  NodeProto node;
  node.op = "Scan";
  node.name = std::move(name);
  node.opset = 9;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  node.attributes.push_back({"body", "", {}, std::move(body)});
  for (const auto &[key, value] : attrs) node.attributes.push_back({key, "", {}, nullptr, value});
  return node;
}

std::string move_first_axis(Composing &c, const std::string &x, std::int64_t axis, std::string output) {
  if (output.empty()) output = c.new_name("moved");
  GraphProto body;
  body.inputs.push_back({c.new_name("place"), true, 0, std::nullopt});
  body.outputs.push_back({c.new_name("same"), true, 0, std::nullopt});
  body.nodes.push_back(identity(body.inputs[0].name, body.outputs[0].name));
  c.append(scan_node(c.node().name, {x}, {output}, std::make_shared<GraphProto>(std::move(body)),
                     with("num_scan_inputs", std::int64_t{1}, "scan_output_axes", std::vector<std::int64_t>{axis})));
  return output;
}

const std::vector<ComposedRule> kLoopRules{{"", "Loop", grow_sequences}};

}  // namespace qtn::onnx
