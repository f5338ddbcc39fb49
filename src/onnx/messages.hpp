// SPDX-License-Identifier: Apache-2.0
// ONNX's messages as plain structs. Reading them allocates in proportion to the bytes read, whatever the bytes say.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/attrs.hpp"
#include "onnx/external_data.hpp"
#include "onnx/proto.hpp"

namespace qtn::onnx {

struct ModelProto {
  std::optional<protozero::data_view> graph;
  std::vector<std::pair<std::string, std::int64_t>> opsets;  ///< domain, version
  std::vector<std::pair<std::string, std::string>> metadata;

  /// The version of ONNX's own operators, whose domain is written "" or "ai.onnx".
  std::optional<std::int64_t> default_opset() const;
};
ModelProto read_model(protozero::data_view bytes);

struct NodeProto {
  std::string name, op, domain;
  std::vector<std::string> inputs, outputs;
  std::vector<protozero::data_view> attributes;
};

struct ValueInfo {
  std::string name;
  bool is_tensor = false;
  std::int32_t elem_type = 0;  ///< onnx.TensorProto.DataType, 0: not said
  std::optional<Shape> shape;  ///< -1: symbolic or unknown
};

struct GraphProto {
  std::string name;
  std::vector<NodeProto> nodes;
  std::vector<protozero::data_view> initializers;
  std::vector<ValueInfo> inputs, outputs, values;
  bool has_sparse_initializer = false;
};
GraphProto read_graph(protozero::data_view bytes);

/// An attribute; tensors in it may be stored outside the file, below `folder`. Throws QTN_EUNSUPPORTED for subgraphs,
/// lists of strings and what else no operator here takes.
std::pair<std::string, Attr> read_attribute(protozero::data_view bytes, const DataFolder &folder);

/// key -> value pairs, as external_data and metadata_props store them.
std::pair<std::string, std::string> read_entry(protozero::data_view bytes);

}  // namespace qtn::onnx
