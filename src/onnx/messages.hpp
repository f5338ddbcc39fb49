// SPDX-License-Identifier: Apache-2.0
// ONNX's messages as plain structs. Reading them allocates in proportion to the bytes read, whatever the bytes say.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/attrs.hpp"
#include "onnx/external_data.hpp"
#include "onnx/proto.hpp"

namespace qtn::onnx {

using Opsets = std::vector<std::pair<std::string, std::int64_t>>;  ///< domain, version

/// The version of ONNX's own operators, whose domain is written "" or "ai.onnx".
std::optional<std::int64_t> default_opset(const Opsets &opsets);

struct GraphProto;

/// An attribute of a node, whose value read_attribute() reads; a graph is read at once.
struct AttributeProto {
  std::string name;
  std::string reference;  ///< of a node of a function: the attribute of the call whose value it has
  protozero::data_view bytes;
  std::shared_ptr<GraphProto> graph = nullptr;
  std::optional<Attr> made = std::nullopt;  ///< the value, where it is of no file
};

struct NodeProto {
  std::string name, op, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<AttributeProto> attributes;
  std::int64_t opset = 0;  ///< of ONNX's own operators, where it comes from a function; 0: the model's
};

/// An operator that a model brings with it, as nodes of others.
struct FunctionProto {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<AttributeProto> defaults;  ///< of attributes that a call leaves out
  std::vector<NodeProto> nodes;
  Opsets opsets;
};

struct ModelProto {
  std::optional<protozero::data_view> graph;
  Opsets opsets;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<FunctionProto> functions;
};
ModelProto read_model(protozero::data_view bytes);

struct ValueInfo {
  std::string name;
  bool is_tensor = false;
  std::int32_t elem_type = 0;             ///< onnx.TensorProto.DataType, 0: not said
  std::optional<Shape> shape;             ///< -1: symbolic or unknown
  std::vector<std::string> symbols = {};  ///< of its dimensions, "" where there is none
};

struct GraphProto {
  std::string name;
  std::vector<NodeProto> nodes;
  std::vector<protozero::data_view> initializers;
  std::vector<std::shared_ptr<const std::string>> dense;  ///< those of them which the file has as sparse tensors
  std::vector<ValueInfo> inputs, outputs, values;
};
/// With the graphs in it. Throws QTN_EUNSUPPORTED where these are nested deeply.
GraphProto read_graph(protozero::data_view bytes);

/// The value of an attribute; tensors in it may be stored outside the file, below `folder`. Throws QTN_EUNSUPPORTED for
/// graphs, lists of strings and what else no operator here takes.
Attr read_attribute(const AttributeProto &attribute, const DataFolder &folder);

/// The same for operators that are registered: a tensor keeps its type, and a list of strings is QTN_EUNSUPPORTED.
Attr read_attribute_as_it_is(const AttributeProto &attribute, const DataFolder &folder);

/// key -> value pairs, as external_data and metadata_props store them.
std::pair<std::string, std::string> read_entry(protozero::data_view bytes);

}  // namespace qtn::onnx
