// SPDX-License-Identifier: Apache-2.0
#include "onnx/messages.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/limits.hpp"
#include "base/size.hpp"
#include "base/utf8.hpp"
#include "onnx/file_budget.hpp"
#include "onnx/sparse_tensor.hpp"
#include "onnx/tensor_proto.hpp"

namespace qtn::onnx {

using protozero::data_view;
using protozero::pbf_reader;

namespace {

/// What is wrong with a name; nullptr where nothing is.
const char *fault_of_name(std::string_view name) {
  for (std::size_t i = 0; i < name.size();) {
    const std::size_t length = utf8_length(name.substr(i));
    if (length == 0) return "a name is not valid UTF-8";
    const auto byte = static_cast<unsigned char>(name[i]);
    if (byte < 0x20 || byte == 0x7F) return "a name contains a control character";
    i += length;
  }
  return nullptr;
}

}  // namespace

std::string read_name(data_view view) {
  std::string name(view.data(), view.size());
  if (const char *fault = fault_of_name(name)) fail(QTN_EFORMAT, fault);
  return name;
}

std::pair<std::string, std::string> read_entry(data_view bytes) {
  std::pair<std::string, std::string> entry;
  pbf_reader message(bytes);
  while (message.next()) switch (message.tag_and_type()) {
      case as_bytes(field::entry::key):
        entry.first = message.get_string();
        break;
      case as_bytes(field::entry::value):
        entry.second = message.get_string();
        break;
      default:
        message.skip();
    }
  return entry;
}

namespace {

std::pair<std::string, std::int64_t> read_opset(data_view bytes) {
  std::pair<std::string, std::int64_t> opset{"", 0};
  pbf_reader message(bytes);
  while (message.next()) switch (message.tag_and_type()) {
      case as_bytes(field::opset::domain):
        opset.first = read_name(message.get_view());
        break;
      case as_varint(field::opset::version):
        opset.second = message.get_int64();
        break;
      default:
        message.skip();
    }
  return opset;
}

}  // namespace

std::optional<std::int64_t> default_opset(const Opsets &opsets) {
  for (const auto &[domain, version] : opsets)
    if (domain.empty() || domain == "ai.onnx") return version;
  return std::nullopt;
}

namespace {

constexpr int kMostNested = 32;

GraphProto read_graph_at(data_view bytes, int depth);

AttributeProto read_attribute_at(data_view bytes, int depth) {
  AttributeProto attribute;
  attribute.bytes = bytes;
  pbf_reader message(bytes);
  while (message.next()) switch (message.tag_and_type()) {
      case as_bytes(field::attribute::name):
        attribute.name = read_name(message.get_view());
        break;
      case as_bytes(field::attribute::ref_attr_name):
        attribute.reference = read_name(message.get_view());
        break;
      case as_bytes(field::attribute::g):
        attribute.graph = std::make_shared<GraphProto>(read_graph_at(message.get_view(), depth + 1));
        break;
      default:
        message.skip();
    }
  return attribute;
}

NodeProto read_node(data_view bytes, int depth) {
  NodeProto node;
  pbf_reader message(bytes);
  while (message.next()) switch (message.tag_and_type()) {
      case as_bytes(field::node::input):
        node.inputs.push_back(read_name(message.get_view()));
        break;
      case as_bytes(field::node::output):
        node.outputs.push_back(read_name(message.get_view()));
        break;
      case as_bytes(field::node::name):
        node.name = read_name(message.get_view());
        break;
      case as_bytes(field::node::op_type):
        node.op = read_name(message.get_view());
        break;
      case as_bytes(field::node::domain):
        node.domain = read_name(message.get_view());
        break;
      case as_bytes(field::node::overload):
        node.overload = read_name(message.get_view());
        break;
      case as_bytes(field::node::attribute):
        node.attributes.push_back(read_attribute_at(message.get_view(), depth));
        break;
      default:
        message.skip();
    }
  return node;
}

/// The size; -1 and the symbol where it has none.
std::int64_t read_dimension(data_view bytes, std::string &symbol) {
  std::int64_t size = -1;
  pbf_reader message(bytes);
  while (message.next()) switch (message.tag_and_type()) {
      case as_varint(field::dimension::dim_value):
        size = std::max<std::int64_t>(message.get_int64(), -1);
        break;
      case as_bytes(field::dimension::dim_param):
        symbol = message.get_string();
        if (fault_of_name(symbol)) symbol.clear();  // nothing depends on it
        break;
      default:
        message.skip();
    }
  return size;
}

void read_shape(data_view bytes, ValueInfo &info) {
  std::vector<std::int64_t> dims;
  pbf_reader message(bytes);
  while (message.next()) switch (message.tag_and_type()) {
      case as_bytes(field::shape::dim):
        info.symbols.push_back({});
        dims.push_back(read_dimension(message.get_view(), info.symbols.back()));
        break;
      default:
        message.skip();
    }
  if (dims.size() > kMaxRank)
    fail(QTN_EUNSUPPORTED, "value \"", info.name, "\" has rank ", dims.size(), ", over the limit of ", kMaxRank);
  info.shape = Shape(std::span<const std::int64_t>(dims));
}

void read_tensor_type(data_view bytes, ValueInfo &info) {
  info.is_tensor = true;
  pbf_reader message(bytes);
  while (message.next()) switch (message.tag_and_type()) {
      case as_varint(field::tensor_type::elem_type):
        info.elem_type = message.get_int32();
        break;
      case as_bytes(field::tensor_type::shape):
        read_shape(message.get_view(), info);
        break;
      default:
        message.skip();
    }
}

ValueInfo read_value_info(data_view bytes) {
  ValueInfo info;
  pbf_reader message(bytes);
  while (message.next()) switch (message.tag_and_type()) {
      case as_bytes(field::value_info::name):
        info.name = read_name(message.get_view());
        break;
      case as_bytes(field::value_info::type): {
        pbf_reader type(message.get_view());
        while (type.next()) switch (type.tag_and_type()) {
            case as_bytes(field::type::tensor_type):
              read_tensor_type(type.get_view(), info);
              break;
            default:
              type.skip();
          }
        break;
      }
      default:
        message.skip();
    }
  return info;
}

/// What a sparse attribute may take beside its share, which is little, since a file may have any number of them.
constexpr std::size_t kDenseBytesOfAttribute = 4096;

GraphProto read_graph_at(data_view bytes, int depth) {
  if (depth > kMostNested) fail(QTN_EUNSUPPORTED, "has graphs in graphs, more than ", kMostNested, " deep");
  GraphProto graph;
  std::size_t dense_bytes = most_made_of(bytes.size()) - (depth == 0 ? 0 : kMadeBytes);
  const auto add = [](auto &list, auto &&read) {
    check_limit(Limit::nodes, list.size() + 1);  // each is larger in memory than in the file
    list.push_back(read());
  };
  pbf_reader message(bytes);
  while (message.next()) switch (message.tag_and_type()) {
      case as_bytes(field::graph::node):
        add(graph.nodes, [&] { return read_node(message.get_view(), depth); });
        break;
      case as_bytes(field::graph::name):
        graph.name = read_name(message.get_view());
        break;
      case as_bytes(field::graph::initializer):
        add(graph.initializers, [&] { return message.get_view(); });
        break;
      case as_bytes(field::graph::input):
        add(graph.inputs, [&] { return read_value_info(message.get_view()); });
        break;
      case as_bytes(field::graph::output):
        add(graph.outputs, [&] { return read_value_info(message.get_view()); });
        break;
      case as_bytes(field::graph::value_info):
        add(graph.values, [&] { return read_value_info(message.get_view()); });
        break;
      case as_bytes(field::graph::sparse_initializer):
        graph.dense.push_back(std::make_shared<const std::string>(dense_tensor(message.get_view(), dense_bytes)));
        dense_bytes -= std::min(dense_bytes, graph.dense.back()->size());
        add(graph.initializers, [&] { return data_view(*graph.dense.back()); });
        break;
      default:
        message.skip();
    }
  return graph;
}

FunctionProto read_function(data_view bytes) {
  FunctionProto function;
  pbf_reader message(bytes);
  while (message.next()) switch (message.tag_and_type()) {
      case as_bytes(field::function::name):
        function.name = read_name(message.get_view());
        break;
      case as_bytes(field::function::domain):
        function.domain = read_name(message.get_view());
        break;
      case as_bytes(field::function::overload):
        function.overload = read_name(message.get_view());
        break;
      case as_bytes(field::function::input):
        function.inputs.push_back(read_name(message.get_view()));
        break;
      case as_bytes(field::function::output):
        function.outputs.push_back(read_name(message.get_view()));
        break;
      case as_bytes(field::function::attribute_proto):
        function.defaults.push_back(read_attribute_at(message.get_view(), 0));
        break;
      case as_bytes(field::function::node):
        check_limit(Limit::nodes, function.nodes.size() + 1);
        function.nodes.push_back(read_node(message.get_view(), 0));
        break;
      case as_bytes(field::function::opset_import):
        function.opsets.push_back(read_opset(message.get_view()));
        break;
      default:
        message.skip();
    }
  return function;
}

}  // namespace

GraphProto read_graph(data_view bytes) { return read_graph_at(bytes, 0); }

ModelProto read_model(data_view bytes) {
  ModelProto model;
  pbf_reader message(bytes);
  while (message.next()) switch (message.tag_and_type()) {
      case as_bytes(field::model::graph):
        model.graph = message.get_view();
        break;
      case as_bytes(field::model::opset_import):
        model.opsets.push_back(read_opset(message.get_view()));
        break;
      case as_bytes(field::model::functions):
        check_limit(Limit::nodes, model.functions.size() + 1);
        model.functions.push_back(read_function(message.get_view()));
        break;
      case as_bytes(field::model::metadata_props):
        model.metadata.push_back(read_entry(message.get_view()));
        break;
      default:
        message.skip();
    }
  return model;
}

namespace {

Attr read_value(const AttributeProto &attribute, const DataFolder &folder, bool as_it_is) {
  if (attribute.made) return *attribute.made;
  const std::string &name = attribute.name;
  std::string text;
  std::int64_t type = 0, integer = 0;
  float number = 0;
  std::vector<std::int64_t> ints;
  std::vector<double> floats;
  std::vector<std::string> names;
  std::optional<data_view> tensor, sparse;
  const char *unsupported = nullptr;
  // Files before IR version 2 leave `type` out: it follows from the field that is there.
  AttributeType seen = AttributeType::undefined;

  pbf_reader message(attribute.bytes);
  while (message.next()) switch (message.tag_and_type()) {
      case as_varint(field::attribute::type):
        type = message.get_enum();
        break;
      case as_fixed32(field::attribute::f):
        number = message.get_float(), seen = AttributeType::f;
        break;
      case as_varint(field::attribute::i):
        integer = message.get_int64(), seen = AttributeType::i;
        break;
      case as_bytes(field::attribute::s):
        text = message.get_string(), seen = AttributeType::s;
        break;
      case as_bytes(field::attribute::t):
        tensor = message.get_view(), seen = AttributeType::t;
        break;
      case as_fixed32(field::attribute::floats):
        floats.push_back(message.get_float());
        seen = AttributeType::floats;
        break;
      case as_bytes(field::attribute::floats):
        append(floats, message.get_packed_float());
        seen = AttributeType::floats;
        break;
      case as_varint(field::attribute::ints):
        ints.push_back(message.get_int64());
        seen = AttributeType::ints;
        break;
      case as_bytes(field::attribute::ints):
        append(ints, message.get_packed_int64());
        seen = AttributeType::ints;
        break;
      case as_bytes(field::attribute::g):
      case as_bytes(field::attribute::graphs):
        unsupported = "a subgraph", message.skip();
        break;
      case as_bytes(field::attribute::strings):
        names.push_back(message.get_string());
        if (as_it_is)
          unsupported = "a list of strings";
        else if (names.back().find(',') != std::string::npos)
          unsupported = "a list of strings with commas";
        seen = AttributeType::strings;
        break;
      case as_bytes(field::attribute::tensors):
        unsupported = "a list of tensors", message.skip();
        break;
      case as_bytes(field::attribute::sparse_tensor):
        sparse = message.get_view(), seen = AttributeType::sparse_tensor;
        break;
      case as_bytes(field::attribute::ref_attr_name):
        unsupported = "a reference to a function's attribute", message.skip();
        break;
      default:
        message.skip();
    }

  const std::string what = cat("attribute \"", name, "\"");
  if (unsupported) fail(QTN_EUNSUPPORTED, what, " is ", unsupported, ", which is not supported");
  if (type == 0) type = static_cast<std::int64_t>(seen);
  switch (static_cast<AttributeType>(type)) {
    case AttributeType::f:
      return static_cast<double>(number);
    case AttributeType::i:
      return integer;
    case AttributeType::s:
      return text;
    case AttributeType::floats:
      return floats;
    case AttributeType::ints:
      return ints;
    case AttributeType::strings:
      for (const std::string &item : names) text += (&item == names.data() ? "" : ",") + item;
      return text;
    case AttributeType::t:
      if (!tensor) fail(QTN_EFORMAT, what, " says it is a tensor and holds none");
      return read_tensor(*tensor, folder, what).second;
    case AttributeType::sparse_tensor: {
      if (!sparse) fail(QTN_EFORMAT, what, " says it is a sparse tensor and holds none");
      const std::size_t most = (Size(sparse->size()) * kMadePerByte + kDenseBytesOfAttribute).value();
      return read_tensor(dense_tensor(*sparse, most, what), "", what).second;
    }
    default:
      break;
  }
  fail(QTN_EUNSUPPORTED, what, " has type ", type, ", which is not supported");
}

}  // namespace

Attr read_attribute(const AttributeProto &attribute, const DataFolder &folder) {
  return read_value(attribute, folder, false);
}

Attr read_attribute_as_it_is(const AttributeProto &attribute, const DataFolder &folder) {
  return read_value(attribute, folder, true);
}

}  // namespace qtn::onnx
