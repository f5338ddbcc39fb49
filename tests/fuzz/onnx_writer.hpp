// SPDX-License-Identifier: Apache-2.0
// ONNX files field by field, so that they may say what no library would write.
#pragma once

#include <protozero/pbf_writer.hpp>
#include <sstream>

#include "calls.hpp"

namespace fuzz {

struct NamedTensor {
  std::string name;
  const qtensor *tensor;
};

struct Node {
  std::string op, domain;
  std::vector<std::string> inputs, outputs;
  std::vector<Attribute> attrs;
};

struct Import {
  std::string domain;
  std::int64_t version;
};

struct OnnxGraph {
  int opset = 21;
  std::vector<Import> imports;  ///< more than those of ONNX and com.microsoft
  std::vector<NamedTensor> inputs, constants;
  std::vector<Node> nodes;
  std::vector<NamedTensor> outputs;  ///< without a tensor: of no type that the file says
  bool open_batch = false;           ///< the first dimension of inputs has a name in place of a number
};

inline void add_type(protozero::pbf_writer &value, const NamedTensor &t, bool open_batch) {
  value.add_string(1, t.name);
  if (t.tensor == nullptr) return;
  protozero::pbf_writer type(value, 2), tensor(type, 1);
  tensor.add_int32(1, qtensor_dtype(t.tensor));
  std::string dims;
  protozero::pbf_writer shape(dims);
  bool first = true;
  for (const std::int64_t d : shape_of(t.tensor)) {
    protozero::pbf_writer dim(shape, 1);
    if (first && open_batch)
      dim.add_string(2, "batch");
    else
      dim.add_int64(1, d);
    first = false;
  }
  tensor.add_message(2, dims);  // of a scalar too: pbf_writer takes an empty message back
}

inline void add_attribute(protozero::pbf_writer &node, const Attribute &a) {
  constexpr int kFloat = 1, kInt = 2, kString = 3, kFloats = 6, kInts = 7, kStrings = 8;
  protozero::pbf_writer attr(node, 5);
  attr.add_string(1, a.name);
  switch (a.kind) {
    case 'i':
      attr.add_int64(3, a.i);
      attr.add_enum(20, kInt);
      break;
    case 'f':
      attr.add_float(2, static_cast<float>(a.f));
      attr.add_enum(20, kFloat);
      break;
    case 's':
      attr.add_bytes(4, a.s);
      attr.add_enum(20, kString);
      break;
    case 'S': {
      std::istringstream names(a.s);
      for (std::string name; names >> name;) attr.add_bytes(9, name);
      attr.add_enum(20, kStrings);
      break;
    }
    case 'F':
      for (const double f : a.floats) attr.add_float(7, static_cast<float>(f));
      attr.add_enum(20, kFloats);
      break;
    default:
      for (const std::int64_t i : a.ints) attr.add_int64(8, i);
      attr.add_enum(20, kInts);
  }
}

inline std::string onnx_file(const OnnxGraph &g) {
  std::string file;
  protozero::pbf_writer model(file);
  model.add_int64(1, 10);
  for (const char *domain : {"", "com.microsoft"}) {
    protozero::pbf_writer opset(model, 8);
    opset.add_string(1, domain);
    opset.add_int64(2, *domain == '\0' ? g.opset : 1);
  }
  for (const Import &import : g.imports) {
    protozero::pbf_writer opset(model, 8);
    opset.add_string(1, import.domain);
    opset.add_int64(2, import.version);
  }
  protozero::pbf_writer graph(model, 7);
  for (const Node &n : g.nodes) {
    protozero::pbf_writer node(graph, 1);
    for (const std::string &name : n.inputs) node.add_string(1, name);
    for (const std::string &name : n.outputs) node.add_string(2, name);
    node.add_string(3, "node_" + n.outputs.front());
    node.add_string(4, n.op);
    for (const Attribute &a : n.attrs) add_attribute(node, a);
    node.add_string(7, n.domain);
  }
  graph.add_string(2, "fuzz");
  for (const NamedTensor &c : g.constants) {
    protozero::pbf_writer tensor(graph, 5);
    for (const std::int64_t d : shape_of(c.tensor)) tensor.add_int64(1, d);
    tensor.add_int32(2, qtensor_dtype(c.tensor));
    tensor.add_string(8, c.name);
    tensor.add_bytes(9, static_cast<const char *>(qtensor_data(c.tensor)), qtensor_nbytes(c.tensor));
  }
  for (const NamedTensor &t : g.inputs) {
    protozero::pbf_writer value(graph, 11);
    add_type(value, t, g.open_batch);
  }
  for (const NamedTensor &t : g.outputs) {
    protozero::pbf_writer value(graph, 12);
    add_type(value, t, false);
  }
  return file;
}

}  // namespace fuzz
