// SPDX-License-Identifier: Apache-2.0
#include "onnx/support.hpp"

#include <cstdlib>

namespace qtn::test {

std::string ModelText::bytes() const {
  namespace f = onnx::field;
  return write([&](pbf_writer &model) {
    model.add_int64(f::model::ir_version, 8);
    {
      pbf_writer graph(model, f::model::graph);
      for (const NodeText &text : nodes) {
        pbf_writer node(graph, f::graph::node);
        for (const auto &input : text.inputs) node.add_string(f::node::input, input);
        for (const auto &output : text.outputs) node.add_string(f::node::output, output);
        if (!text.name.empty()) node.add_string(f::node::name, text.name);
        node.add_string(f::node::op_type, text.op);
        if (!text.domain.empty()) node.add_string(f::node::domain, text.domain);
        for (const auto &attribute : text.attributes) node.add_message(f::node::attribute, attribute);
      }
      graph.add_string(f::graph::name, "test");
      for (const auto &initializer : initializers) graph.add_message(f::graph::initializer, initializer);
      for (const auto &tensor : sparse_initializers) graph.add_message(f::graph::sparse_initializer, tensor);
      for (const auto &name : inputs) add_value(pbf_writer(graph, f::graph::input), name);
      for (const auto &name : outputs) add_output(pbf_writer(graph, f::graph::output), name);
    }
    for (const auto &[key, value] : metadata) {
      pbf_writer entry(model, f::model::metadata_props);
      entry.add_string(f::entry::key, key);
      entry.add_string(f::entry::value, value);
    }
    if (opset) pbf_writer(model, f::model::opset_import).add_int64(f::opset::version, opset);
  });
}

void ModelText::add_output(pbf_writer message, const std::string &name) const {
  namespace f = onnx::field;
  message.add_string(f::value_info::name, name);
  if (output_type == 0) return;
  pbf_writer type(message, f::value_info::type);
  pbf_writer(type, f::type::tensor_type).add_int32(f::tensor_type::elem_type, output_type);
}

void ModelText::add_value(pbf_writer message, const std::string &name) const {
  namespace f = onnx::field;
  message.add_string(f::value_info::name, name);
  pbf_writer type(message, f::value_info::type);
  pbf_writer tensor(type, f::type::tensor_type);
  tensor.add_int32(f::tensor_type::elem_type, input_type);
  pbf_writer dims(tensor, f::tensor_type::shape);
  for (const std::int64_t dim : shape) {
    pbf_writer message_of_dim(dims, f::shape::dim);
    if (dim >= 0)
      message_of_dim.add_int64(f::dimension::dim_value, dim);
    else
      message_of_dim.add_string(f::dimension::dim_param, "batch");
  }
}

graph::Graph parse(const std::string &bytes, const std::string &folder) {
  return onnx::parse(std::as_bytes(std::span(bytes)), folder);
}

std::string write(const std::function<void(pbf_writer &)> &fill) {
  std::string bytes;
  pbf_writer message(bytes);
  fill(message);
  return bytes;
}

std::string tensor_text(const std::string &name, std::int32_t data_type, const std::vector<std::int64_t> &dims,
                        const std::function<void(pbf_writer &)> &more) {
  namespace f = onnx::field::tensor;
  return write([&](pbf_writer &tensor) {
    for (const std::int64_t dim : dims) tensor.add_int64(f::dims, dim);
    tensor.add_int32(f::data_type, data_type);
    tensor.add_string(f::name, name);
    more(tensor);
  });
}

std::string float_tensor(const std::string &name, const std::vector<std::int64_t> &dims,
                         const std::vector<float> &values) {
  return raw_tensor(name, QTN_FLOAT32, dims, values);
}

std::string external_tensor(const std::string &name, const std::vector<std::int64_t> &dims, const std::string &location,
                            const std::string &offset, const std::string &length) {
  namespace f = onnx::field;
  return tensor_text(name, QTN_FLOAT32, dims, [&](pbf_writer &tensor) {
    const auto entry = [&](const char *key, const std::string &value) {
      if (value.empty()) return;
      pbf_writer message(tensor, f::tensor::external_data);
      message.add_string(f::entry::key, key);
      message.add_string(f::entry::value, value);
    };
    entry("location", location);
    entry("offset", offset);
    entry("length", length);
    tensor.add_enum(f::tensor::data_location, 1);
  });
}

std::string int_attribute(const std::string &name, std::int64_t value) {
  namespace f = onnx::field::attribute;
  return write([&](pbf_writer &attribute) {
    attribute.add_string(f::name, name);
    attribute.add_int64(f::i, value);
    attribute.add_enum(f::type, 2);
  });
}

std::string ints_attribute(const std::string &name, const std::vector<std::int64_t> &values) {
  namespace f = onnx::field::attribute;
  return write([&](pbf_writer &attribute) {
    attribute.add_string(f::name, name);
    for (const std::int64_t value : values) attribute.add_int64(f::ints, value);
    attribute.add_enum(f::type, 7);
  });
}

std::string graph_attribute(const std::string &name, const std::vector<std::string> &inputs,
                            const std::vector<NodeText> &nodes, const std::vector<std::string> &outputs) {
  namespace f = onnx::field;
  return write([&](pbf_writer &attribute) {
    attribute.add_string(f::attribute::name, name);
    attribute.add_enum(f::attribute::type, 5);
    pbf_writer graph(attribute, f::attribute::g);
    for (const NodeText &text : nodes) {
      pbf_writer node(graph, f::graph::node);
      for (const auto &input : text.inputs) node.add_string(f::node::input, input);
      for (const auto &made : text.outputs) node.add_string(f::node::output, made);
      node.add_string(f::node::name, text.name);
      node.add_string(f::node::op_type, text.op);
      for (const auto &inner : text.attributes) node.add_message(f::node::attribute, inner);
    }
    for (const auto &input : inputs) pbf_writer(graph, f::graph::input).add_string(f::value_info::name, input);
    for (const auto &output : outputs) pbf_writer(graph, f::graph::output).add_string(f::value_info::name, output);
  });
}

const graph::Value &named(const graph::Graph &g, const std::string &name) {
  for (const graph::Value &value : g.values)
    if (value.name == name) return value;
  fail_test("no value \"", name, "\"");
  std::abort();
}

std::vector<std::string> op_names(const graph::Graph &g) {
  std::vector<std::string> names;
  for (const graph::Node &node : g.nodes) names.emplace_back(node.op->name);
  return names;
}

void expect_same_bits(const std::vector<Tensor> &a, const std::vector<Tensor> &b) {
  assert_int_equal(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Tensor x = a[i].to_contiguous(), y = b[i].to_contiguous();
    assert_true(x.shape() == y.shape() && x.dtype() == y.dtype());
    assert_memory_equal(x.data(), y.data(), x.nbytes());
  }
}

QuantizerPtr per_tensor(qdtype dtype, double scale, std::int64_t zero, Numerics numerics) {
  return std::make_shared<Quantizer>(dtype, QTN_PER_TENSOR_AFFINE, 0, std::vector{scale}, std::vector{zero}, numerics);
}

}  // namespace qtn::test
