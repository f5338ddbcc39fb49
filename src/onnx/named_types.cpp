// SPDX-License-Identifier: Apache-2.0
#include "onnx/named_types.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "onnx/tensor_proto.hpp"

namespace qtn::onnx {
namespace {

/// Attributes that say the type of what a node makes.
constexpr std::array<std::string_view, 4> kTypeAttributes = {"to", "dtype", "output_dtype", "output_datatype"};

/// What follows from constants alone, and its type; 0: not known.
struct Known {
  bool constant;
  std::int32_t type;
};

/// The type that an attribute says by its number, or that of the tensor that it is. Elements are not read.
std::int32_t said_type(const AttributeProto &attribute) {
  namespace f = field::attribute;
  if (attribute.made) {
    if (const auto *tensor = std::get_if<Tensor>(&*attribute.made)) return tensor->dtype();
    const auto *code = std::get_if<std::int64_t>(&*attribute.made);
    return code ? static_cast<std::int32_t>(*code) : 0;
  }
  std::int32_t type = 0;
  protozero::pbf_reader message(attribute.bytes);
  while (message.next()) switch (message.tag_and_type()) {
      case as_varint(f::i):
        type = static_cast<std::int32_t>(message.get_int64());
        break;
      case as_bytes(f::t):
        type = read_head(message.get_view()).data_type;
        break;
      default:
        message.skip();
    }
  return type;
}

class NamedTypes {
 public:
  NamedTypes(std::set<std::int32_t> &found, const NamedTypes *outer) : found_(found), outer_(outer) {}

  void visit(const GraphProto &graph) {
    for (const auto *list : {&graph.inputs, &graph.outputs, &graph.values})
      for (const ValueInfo &value : *list) {
        found_.insert(value.elem_type);
        known_[value.name] = {false, value.elem_type};
      }
    for (const protozero::data_view initializer : graph.initializers) {
      const TensorHead head = read_head(initializer);
      known_[head.name] = {true, head.data_type};
    }
    for (const NodeProto &node : graph.nodes) visit(node);
  }

 private:
  Known known(const std::string &name) const {
    for (const NamedTypes *scope = this; scope; scope = scope->outer_)
      if (const auto at = scope->known_.find(name); at != scope->known_.end()) return at->second;
    return {false, 0};
  }

  void visit(const NodeProto &node) {
    bool constant = true;
    for (const std::string &name : node.inputs) constant = constant && (name.empty() || known(name).constant);
    std::int32_t made = 0;
    for (const AttributeProto &attribute : node.attributes) {
      if (attribute.graph) {
        constant = false;
        NamedTypes(found_, this).visit(*attribute.graph);
      } else if (std::ranges::find(kTypeAttributes, attribute.name) != kTypeAttributes.end()) {
        found_.insert(made = said_type(attribute));
      } else if (attribute.name == "value" && (node.op == "Constant" || node.op == "ConstantOfShape")) {
        made = said_type(attribute);
      }
    }
    if (node.op == "CastLike" && node.inputs.size() == 2) found_.insert(made = known(node.inputs[1]).type);
    if (constant)
      for (const std::string &name : node.inputs) found_.insert(known(name).type);
    for (const std::string &name : node.outputs) known_[name] = {constant, made};
  }

  std::set<std::int32_t> &found_;
  const NamedTypes *outer_;
  std::unordered_map<std::string, Known> known_;
};

}  // namespace

std::set<std::int32_t> named_types(const GraphProto &graph) {
  std::set<std::int32_t> found;
  NamedTypes(found, nullptr).visit(graph);
  return found;
}

}  // namespace qtn::onnx
