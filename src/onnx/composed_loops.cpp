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

/// How often a graph names each value as an operand or as an output, in its graphs, too.
void count_readers(const GraphProto &graph, std::unordered_map<std::string, int> &counts) {
  for (const ValueInfo &output : graph.outputs) ++counts[output.name];
  for (const NodeProto &node : graph.nodes) {
    for (const std::string &name : node.inputs) ++counts[name];
    for (const AttributeProto &attribute : node.attributes)
      if (attribute.graph) count_readers(*attribute.graph, counts);
  }
}

/// A body of which some states begin as an empty sequence, and to which every iteration adds an item at the end.
class CollectingBody {
 public:
  explicit CollectingBody(GraphProto &body) : body_(body) {
    count_readers(body, readers_);
    for (NodeProto &node : body.nodes)
      if (node.outputs.size() == 1) makers_[node.outputs[0]] = &node;
  }

  /// Whether input `k` is such a state, of which the items, under that name, are no longer put together then.
  bool collects(std::size_t k, const std::string &items) {
    NodeProto *insertion = only_insertion(body_.inputs[k].name, body_.outputs[k - 1].name);
    if (!insertion) return false;
    // What is cut out of a tensor may have another length each time.
    const auto item = makers_.find(insertion->inputs[1]);
    if (item != makers_.end() && item->second->op == "Slice") return false;
    *insertion = identity(insertion->inputs[1], items);
    return true;
  }

 private:
  /// The node that puts an item at the end of a body's input, and makes its output of it, where nothing else reads either;
  /// or nullptr.
  NodeProto *only_insertion(const std::string &input, const std::string &output) {
    const auto at = makers_.find(output);
    if (at == makers_.end() || readers_[input] != 1 || readers_[output] != 1) return nullptr;
    const NodeProto &node = *at->second;
    const bool inserts = node.op == "SequenceInsert" && node.domain.empty() && node.inputs.size() >= 2 &&
                         node.inputs[0] == input && (node.inputs.size() == 2 || node.inputs[2].empty()) &&
                         node.outputs[0] == output;
    return inserts ? at->second : nullptr;
  }

  GraphProto &body_;
  std::unordered_map<std::string, int> readers_;
  std::unordered_map<std::string, NodeProto *> makers_;
};

/// The graph of a loop, which is its own from here on, or nullptr.
GraphProto *own_body(NodeProto &loop) {
  const auto body = std::ranges::find(loop.attributes, "body", &AttributeProto::name);
  if (body == loop.attributes.end() || !body->graph) return nullptr;
  body->graph = std::make_shared<GraphProto>(*body->graph);
  return body->graph.get();
}

/// The list without states that have items; place 0 belongs to state `first`.
template <class T>
void leave_out(std::vector<T> &list, const Names &items, std::size_t first) {
  std::vector<T> rest;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (i + first >= items.size() || items[i + first].empty()) rest.push_back(std::move(list[i]));
  list = std::move(rest);
}

bool grow_sequences(Composing &c) {
  const auto is_empty = [&](const std::string &name) {
    const Sequence *s = c.sequence(name);
    return s && s->whole.empty() && s->items.empty();
  };
  const NodeProto &given = c.node();
  if (std::ranges::none_of(given.inputs, is_empty)) return false;
  NodeProto loop = given;
  GraphProto *body = own_body(loop);
  if (!body || given.outputs.size() + 1 != body->outputs.size()) return false;
  CollectingBody collecting(*body);
  // For each state, "" where the loop does not collect them.
  Names items(std::min({given.inputs.size(), body->inputs.size(), body->outputs.size() + 1}));
  for (std::size_t k = 2; k < items.size(); ++k) {  // behind the number of iterations and the condition
    const std::string name = is_empty(given.inputs[k]) ? c.new_name("item") : "";
    if (!name.empty() && collecting.collects(k, name)) items[k] = name;
  }
  leave_out(loop.inputs, items, 0);
  leave_out(loop.outputs, items, 2);
  leave_out(body->inputs, items, 0);
  leave_out(body->outputs, items, 1);
  bool any = false;
  for (std::size_t k = 2; k < items.size(); ++k) {
    if (items[k].empty()) continue;
    body->outputs.push_back(tensor_named(items[k]));
    loop.outputs.push_back(c.new_name("items"));
    c.scope().sequences[given.outputs[k - 2]] = {{}, loop.outputs.back(), 0, 1, false};
    any = true;
  }
  if (any) c.visit(std::move(loop));
  return any;
}

/// Sequences from iteration to iteration: each as two tensors.
bool carry_sequences(Composing &c) {
  if (std::ranges::none_of(c.node().inputs, [&](const std::string &name) { return c.sequence(name); })) return false;
  NodeProto loop = c.node();
  GraphProto *body = own_body(loop);
  if (!body) return false;
  Names operands;
  std::vector<ValueInfo> inputs;
  std::unordered_map<std::string, Sequence> carried;
  for (std::size_t k = 0; k < std::max(loop.inputs.size(), body->inputs.size()); ++k) {
    const bool is_state = k >= 2 && k < std::min(loop.inputs.size(), body->inputs.size());
    const Sequence *s = is_state ? c.sequence(loop.inputs[k]) : nullptr;
    if (!s) {
      if (k < loop.inputs.size()) operands.push_back(loop.inputs[k]);
      if (k < body->inputs.size()) inputs.push_back(body->inputs[k]);
      continue;
    }
    const std::optional<Sequence> outer = packed(c, *s);
    if (!outer) return false;
    operands.insert(operands.end(), {outer->whole, outer->table});
    const Sequence inner = packed_as(c.new_name("items"), c.new_name("table"));
    push_packed(inputs, inner);
    carried[body->inputs[k].name] = inner;
  }
  if (carried.empty()) return false;
  loop.inputs = std::move(operands);
  body->inputs = std::move(inputs);
  c.scope().carried = std::move(carried);
  c.visit(std::move(loop));
  return true;
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
