// SPDX-License-Identifier: Apache-2.0
#include "onnx/names.hpp"

#include "onnx/tensor_proto.hpp"

namespace qtn::onnx {

void take_names(const GraphProto &graph, graph::UniqueNames &names) {
  for (const protozero::data_view initializer : graph.initializers) names.take(tensor_name(initializer));
  for (const ValueInfo &input : graph.inputs) names.take(input.name);
  for (const NodeProto &node : graph.nodes) {
    for (const std::string &name : node.inputs) names.take(name);
    for (const std::string &name : node.outputs) names.take(name);
    for (const AttributeProto &attribute : node.attributes)
      if (attribute.graph) take_names(*attribute.graph, names);
  }
}

}  // namespace qtn::onnx
