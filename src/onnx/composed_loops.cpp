// SPDX-License-Identifier: Apache-2.0
// Loops that change sequences. Where the file counts iterations, these become nodes; what each iteration puts at the end
// of an empty sequence is an output of all iterations, side by side; other sequences are carried packed.
#include <algorithm>

#include "onnx/packed_sequences.hpp"

namespace qtn::onnx {

NodeProto identity(std::string from, std::string to) {
  NodeProto node;
  node.op = "Identity";
  node.inputs = {std::move(from)};
  node.outputs = {std::move(to)};
  return node;
}

ValueInfo tensor_named(std::string name, std::int32_t type) {
  ValueInfo info;
  info.name = std::move(name);
  info.is_tensor = true;
  info.elem_type = type;
  if (type != 0) info.shape.emplace();
  return info;
}

namespace {

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
  // What is cut out of a tensor may have another length each time.
  const auto is_cut = [&](const NodeProto &node) {
    return node.op == "Slice" && node.outputs == Names{insertion->inputs[1]};
  };
  if (insertion == body.nodes.end() || std::ranges::any_of(body.nodes, is_cut)) return false;
  *insertion = identity(insertion->inputs[1], items);
  body.inputs.erase(body.inputs.begin() + static_cast<std::ptrdiff_t>(k));
  body.outputs.erase(body.outputs.begin() + static_cast<std::ptrdiff_t>(k - 1));
  body.outputs.push_back(tensor_named(items));
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
  if (any) c.visit(std::move(loop));
  return any;
}

/// Sequences from iteration to iteration: each as two tensors.
bool carry_sequences(Composing &c) {
  NodeProto loop = c.node();
  const auto body = std::ranges::find(loop.attributes, "body", &AttributeProto::name);
  if (body == loop.attributes.end() || !body->graph) return false;
  body->graph = std::make_shared<GraphProto>(*body->graph);
  std::vector<ValueInfo> &inputs = body->graph->inputs;
  bool any = false;
  for (std::size_t k = std::min(loop.inputs.size(), inputs.size()); k-- > 2;) {
    const Sequence *s = c.sequence(loop.inputs[k]);
    if (!s) continue;
    const std::optional<Sequence> outer = packed(c, *s);
    if (!outer) return false;
    const Sequence inner = packed_as(c.new_name("items"), c.new_name("table"));
    const auto next = static_cast<std::ptrdiff_t>(k) + 1;
    loop.inputs[k] = outer->whole;
    loop.inputs.insert(loop.inputs.begin() + next, outer->table);
    c.scope().carried[inputs[k].name] = inner;
    pack_in(inputs, k, inner);
    any = true;
  }
  if (any) c.visit(std::move(loop));
  return any;
}

bool rewrite_loop(Composing &c) { return unroll(c) || grow_sequences(c) || carry_sequences(c); }

}  // namespace

NodeProto node_with_body(const char *op, std::string name, Names inputs, Names outputs,
                         std::shared_ptr<GraphProto> body, const Attrs &attrs) {
  NodeProto node;
  node.op = op;
  node.name = std::move(name);
  node.opset = kOpsetOfNew;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  node.attributes.push_back({"body", "", {}, std::move(body)});
  for (const auto &[key, value] : attrs) node.attributes.push_back({key, "", {}, nullptr, value});
  return node;
}

const std::vector<ComposedRule> kLoopRules{{"", "Loop", rewrite_loop}};

}  // namespace qtn::onnx
