// SPDX-License-Identifier: Apache-2.0
#include "network.hpp"

namespace fuzz {

Tensor network_input(std::int64_t batch, std::uint64_t seed) { return filled(QTN_FLOAT32, {batch, 3, 6, 6}, seed); }

Model small_network() {
  std::vector<Tensor> tensors;
  OnnxGraph g;
  g.open_batch = true;
  const auto tensor = [&](const std::string &name, const std::vector<std::int64_t> &shape) -> NamedTensor {
    tensors.push_back(filled(QTN_FLOAT32, shape, tensors.size()));
    return {name, tensors.back().get()};
  };
  const auto constant = [&](const std::string &name, const std::vector<std::int64_t> &shape) {
    g.constants.push_back(tensor(name, shape));
  };
  const auto scalar = [&](const std::string &name, float value) {
    tensors.push_back(
        make<Tensor>(qtensor_create, QTN_FLOAT32, nullptr, std::size_t{0}, nullptr, &value, sizeof value));
    g.constants.push_back({name, tensors.back().get()});
  };
  const auto ints = [](const char *name, std::vector<std::int64_t> values) {
    return Attribute{name, 'I', 0, 0, "", std::move(values), {}};
  };
  const auto one = [](const char *name, std::int64_t value) { return Attribute{name, 'i', value, 0, "", {}, {}}; };

  g.inputs.push_back(tensor("x", {1, 3, 6, 6}));
  constant("w1", {4, 3, 3, 3});
  constant("b1", {4});
  g.nodes.push_back({"Conv", "", {"x", "w1", "b1"}, {"c1"}, {ints("pads", {1, 1, 1, 1})}});
  for (const char *name : {"scale", "shift", "mean"}) constant(name, {4});
  const float variance[] = {1, 2, 0.5F, 1.5F};
  const std::int64_t four[] = {4};
  tensors.push_back(
      make<Tensor>(qtensor_create, QTN_FLOAT32, four, std::size_t{1}, nullptr, variance, sizeof variance));
  g.constants.push_back({"variance", tensors.back().get()});
  g.nodes.push_back({"BatchNormalization", "", {"c1", "scale", "shift", "mean", "variance"}, {"n1"}, {}});
  g.nodes.push_back({"Relu", "", {"n1"}, {"r1"}, {}});
  g.nodes.push_back({"MaxPool", "", {"r1"}, {"p1"}, {ints("kernel_shape", {2, 2}), ints("strides", {2, 2})}});
  constant("w2", {4, 1, 3, 3});
  g.nodes.push_back({"Conv", "", {"p1", "w2"}, {"c2"}, {ints("pads", {1, 1, 1, 1}), one("group", 4)}});
  scalar("zero", 0);
  scalar("six", 6);
  g.nodes.push_back({"Clip", "", {"c2", "zero", "six"}, {"k2"}, {}});
  g.nodes.push_back({"Add", "", {"k2", "p1"}, {"s2"}, {}});
  g.nodes.push_back({"GlobalAveragePool", "", {"s2"}, {"m2"}, {}});
  g.nodes.push_back({"Flatten", "", {"m2"}, {"f2"}, {}});
  constant("w3", {4, 4});
  constant("b3", {4});
  g.nodes.push_back({"Gemm", "", {"f2", "w3", "b3"}, {"y"}, {one("transB", 1)}});
  g.outputs.push_back(tensor("y", {1, 4}));
  const std::string file = onnx_file(g);
  Model model = make<Model>(qmodel_load_bytes, file.data(), file.size());
  require(model != nullptr, std::string("the small network: ") + qerror_message());
  return model;
}

}  // namespace fuzz
