// SPDX-License-Identifier: Apache-2.0
#include "onnx/functions.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/error.hpp"
#include "onnx/names.hpp"
#include "onnx/tensor_proto.hpp"

namespace qtn::onnx {
namespace {

constexpr std::size_t kMostDeep = 64, kMostNodes = 1 << 18;

using Names = std::unordered_map<std::string, std::string>;

const AttributeProto *find(const std::vector<AttributeProto> &attributes, const std::string &name) {
  const auto at = std::ranges::find(attributes, name, &AttributeProto::name);
  return at == attributes.end() ? nullptr : &*at;
}

class Inlining {
 public:
  Inlining(const std::vector<FunctionProto> &functions, bool (*is_known)(const NodeProto &)) : is_known_(is_known) {
    for (const FunctionProto &f : functions) functions_[{f.domain, f.name, f.overload}] = &f;
  }

  void run(GraphProto &graph) {
    take_names(graph, names_);
    expand(graph.nodes, 0);
  }

 private:
  void expand(std::vector<NodeProto> &nodes, std::size_t depth) {
    std::vector<NodeProto> expanded;
    for (NodeProto &node : nodes) {
      for (AttributeProto &attribute : node.attributes)
        if (attribute.graph) expand(attribute.graph->nodes, depth);
      const auto f = functions_.find({node.domain, node.op, node.overload});
      if (f == functions_.end() || is_known_(node)) {
        expanded.push_back(std::move(node));
        continue;
      }
      if (depth == kMostDeep)
        fail(QTN_EFORMAT, "function ", node.op, " (domain ", node.domain, ") is called by itself, or ", kMostDeep,
             " functions deep");
      std::vector<NodeProto> body = instance_of(*f->second, node);
      expand(body, depth + 1);
      std::ranges::move(body, std::back_inserter(expanded));
    }
    nodes = std::move(expanded);
  }

  std::vector<NodeProto> instance_of(const FunctionProto &f, const NodeProto &call) {
    if (call.inputs.size() > f.inputs.size() || call.outputs.size() > f.outputs.size())
      fail(QTN_EFORMAT, "function ", f.name, " takes ", f.inputs.size(), " inputs and makes ", f.outputs.size(),
           " outputs, node \"", call.name, "\" has ", call.inputs.size(), " and ", call.outputs.size());
    Names names{{"", ""}};
    const auto bind = [&](const std::vector<std::string> &formal, const std::vector<std::string> &actual) {
      for (std::size_t i = 0; i < formal.size(); ++i)
        if (i < actual.size() && !actual[i].empty()) names[formal[i]] = actual[i];
    };
    bind(f.inputs, call.inputs);
    for (const std::string &input : f.inputs) names.try_emplace(input, "");
    bind(f.outputs, call.outputs);
    const std::int64_t opset = default_opset(f.opsets).value_or(call.opset);
    std::vector<NodeProto> body = f.nodes;
    for (NodeProto &node : body) {
      node.opset = opset;
      if (!node.name.empty()) node.name = call.name + "/" + node.name;
      adapt(node, call, f.defaults, names, call.name.empty() ? f.name : call.name);
    }
    return body;
  }

  /// A node of a function becomes one of the graph: names of values, and attributes that are those of the call.
  void adapt(NodeProto &node, const NodeProto &call, const std::vector<AttributeProto> &defaults, Names &names,
             const std::string &prefix) {
    if (++count_ > kMostNodes) fail(QTN_EUNSUPPORTED, "functions come to more than ", kMostNodes, " nodes");
    for (std::vector<std::string> *list : {&node.inputs, &node.outputs})
      for (std::string &name : *list) {
        const auto [at, is_new] = names.try_emplace(name);
        if (is_new) at->second = names_.make(prefix + "/" + name);
        name = at->second;
      }
    std::vector<AttributeProto> attributes;
    for (AttributeProto &attribute : node.attributes) {
      if (!attribute.reference.empty()) {
        const AttributeProto *given = find(call.attributes, attribute.reference);
        if (!given) given = find(defaults, attribute.reference);
        if (!given) continue;  // the operator's own default
        attribute = {attribute.name, "", given->bytes, given->graph};
      }
      if (attribute.graph) {
        attribute.graph = std::make_shared<GraphProto>(*attribute.graph);
        adapt(*attribute.graph, call, defaults, names, prefix);
      }
      attributes.push_back(std::move(attribute));
    }
    node.attributes = std::move(attributes);
  }

  void adapt(GraphProto &graph, const NodeProto &call, const std::vector<AttributeProto> &defaults, const Names &outer,
             const std::string &prefix) {
    Names names = outer;
    for (const protozero::data_view initializer : graph.initializers) {
      const std::string name = tensor_name(initializer);
      names.insert_or_assign(name, name);
    }
    for (const std::vector<ValueInfo> *list : {&graph.inputs, &graph.values})
      for (const ValueInfo &info : *list) names.insert_or_assign(info.name, info.name);
    for (NodeProto &node : graph.nodes) adapt(node, call, defaults, names, prefix);
    for (ValueInfo &info : graph.outputs)
      if (const auto at = names.find(info.name); at != names.end()) info.name = at->second;
  }

  std::map<std::tuple<std::string, std::string, std::string>, const FunctionProto *> functions_;
  bool (*is_known_)(const NodeProto &);
  graph::UniqueNames names_;
  std::size_t count_ = 0;
};

}  // namespace

void inline_functions(GraphProto &graph, const std::vector<FunctionProto> &functions,
                      bool (*is_known)(const NodeProto &)) {
  if (!functions.empty()) Inlining(functions, is_known).run(graph);
}

}  // namespace qtn::onnx
