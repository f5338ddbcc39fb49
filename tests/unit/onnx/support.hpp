// SPDX-License-Identifier: Apache-2.0
// What the tests of this folder share: small graphs, models written field by field.
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

#include "check.hpp"
#include "folder.hpp"
#include "graph/evaluate.hpp"
#include "graph/graph.hpp"
#include "onnx/onnx.hpp"
#include "onnx/proto.hpp"

namespace qtn::test {

using protozero::pbf_writer;

graph::Graph parse(const std::string &bytes, const std::string &folder = {});

std::string write(const std::function<void(pbf_writer &)> &fill);

struct NodeText {
  std::string op;
  std::vector<std::string> inputs, outputs;
  std::string name{}, domain{};
  std::vector<std::string> attributes{};  ///< AttributeProto messages
};

/// A model written field by field, so that it can say what no exporter would.
struct ModelText {
  std::int64_t opset = 17;
  std::vector<NodeText> nodes{};
  std::vector<std::string> initializers{};         ///< TensorProto messages
  std::vector<std::string> sparse_initializers{};  ///< SparseTensorProto messages
  std::vector<std::string> inputs{"x"}, outputs{"y"};
  std::vector<std::int64_t> shape{1, 2};                   ///< of every input
  std::int32_t input_type = QTN_FLOAT32, output_type = 0;  ///< 0: not said
  std::vector<std::pair<std::string, std::string>> metadata{};

  std::string bytes() const;

 private:
  void add_output(pbf_writer message, const std::string &name) const;
  void add_value(pbf_writer message, const std::string &name) const;
};

/// The head of a TensorProto; `more` adds its data.
std::string tensor_text(const std::string &name, std::int32_t data_type, const std::vector<std::int64_t> &dims,
                        const std::function<void(pbf_writer &)> &more);

template <class T>
std::string raw_tensor(const std::string &name, std::int32_t data_type, const std::vector<std::int64_t> &dims,
                       const std::vector<T> &values) {
  return tensor_text(name, data_type, dims, [&](pbf_writer &tensor) {
    tensor.add_bytes(onnx::field::tensor::raw_data, reinterpret_cast<const char *>(values.data()),
                     values.size() * sizeof(T));
  });
}

std::string float_tensor(const std::string &name, const std::vector<std::int64_t> &dims,
                         const std::vector<float> &values);

std::string external_tensor(const std::string &name, const std::vector<std::int64_t> &dims, const std::string &location,
                            const std::string &offset = {}, const std::string &length = {});

std::string int_attribute(const std::string &name, std::int64_t value);

std::string ints_attribute(const std::string &name, const std::vector<std::int64_t> &values);

/// A graph, with the names of its inputs and outputs.
std::string graph_attribute(const std::string &name, const std::vector<std::string> &inputs,
                            const std::vector<NodeText> &nodes, const std::vector<std::string> &outputs);

/// The value of that name; ends the test where there is none.
const graph::Value &named(const graph::Graph &g, const std::string &name);

std::vector<std::string> op_names(const graph::Graph &g);

void expect_same_bits(const std::vector<Tensor> &a, const std::vector<Tensor> &b);

QuantizerPtr per_tensor(qdtype dtype, double scale, std::int64_t zero, Numerics numerics = Numerics::onnx);

}  // namespace qtn::test
