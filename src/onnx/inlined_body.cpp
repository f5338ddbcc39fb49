// SPDX-License-Identifier: Apache-2.0
// The nodes of a graph that a node holds, in the place of that node.
#include "onnx/composing.hpp"

namespace qtn::onnx {
namespace {

void rename(std::string &name, const Renamed &names) {
  if (const auto at = names.find(name); at != names.end()) name = at->second;
}

void rename(NodeProto &node, const Renamed &names);

/// What a graph reads of those around it; its own values keep their names.
std::shared_ptr<GraphProto> renamed(GraphProto graph, Renamed names) {
  for (const protozero::data_view initializer : graph.initializers) names.erase(tensor_name(initializer));
  for (const ValueInfo &input : graph.inputs) names.erase(input.name);
  for (const NodeProto &node : graph.nodes)
    for (const std::string &output : node.outputs) names.erase(output);
  for (NodeProto &node : graph.nodes) rename(node, names);
  for (ValueInfo &output : graph.outputs) rename(output.name, names);
  return std::make_shared<GraphProto>(std::move(graph));
}

void rename(NodeProto &node, const Renamed &names) {
  for (std::string &name : node.inputs) rename(name, names);
  for (AttributeProto &attribute : node.attributes)
    if (attribute.graph) attribute.graph = renamed(*attribute.graph, names);
}

}  // namespace

Renamed initializers_of(Composing &c, const GraphProto &graph) {
  Renamed names;
  for (const protozero::data_view initializer : graph.initializers)
    names[tensor_name(initializer)] = c.make(c.read(initializer));
  return names;
}

Names inlined(Composing &c, const std::shared_ptr<const GraphProto> &graph, Renamed names) {
  c.scope().inlined.push_back(graph);
  for (const NodeProto &node : graph->nodes)
    for (const std::string &output : node.outputs)
      if (!output.empty()) names[output] = c.new_name(output);
  for (const ValueInfo &info : graph->values)
    if (const auto at = names.find(info.name); at != names.end()) c.scope().infos.insert({at->second, &info});
  for (NodeProto node : graph->nodes) {
    if (node.opset == 0) node.opset = c.opset();
    if (!node.name.empty()) node.name = c.node().name + "/" + node.name;
    rename(node, names);
    for (std::string &name : node.outputs) rename(name, names);
    c.visit(std::move(node));
  }
  Names outputs;
  for (const ValueInfo &output : graph->outputs) {
    outputs.push_back(output.name);
    rename(outputs.back(), names);
  }
  return outputs;
}

}  // namespace qtn::onnx
