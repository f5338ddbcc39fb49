// SPDX-License-Identifier: Apache-2.0
// A channel with weights so small that its bias does not fit 32 bits in their units: conversion widens the grid of the
// weights, and training keeps the bias, too.
#include "quant/calibrate.hpp"
#include "quant/graph_builder.hpp"
#include "train/trainer.hpp"
#include "varied.hpp"

namespace qtn::train {
namespace {

using namespace qtn::test;

Tensor weights_with_small_channel(const Shape &shape, float factor) {
  const Tensor w = varied(shape, 1);
  const std::int64_t of_channel = w.count() / shape[0];
  for (std::int64_t i = 0; i < of_channel; ++i) w.as<float>()[i] *= factor;
  return w;
}

graph::Graph matrix(float factor) {
  return GraphBuilder()
      .input("x", {8, 4})
      .constant("w", weights_with_small_channel({3, 4}, factor))
      .constant("b", floats({3}, {2, -1, 0.5f}))
      .node("Gemm", "gemm", {"x", "w", "b"}, {"y"}, attrs({{"transB", std::int64_t{1}}}))
      .build({"y"});
}

graph::Graph normalized(float factor) {
  return GraphBuilder()
      .input("x", {8, 4, 1, 1})
      .constant("w", weights_with_small_channel({3, 4, 1, 1}, factor))
      .constant("scale", floats({3}, {1, 1, 1}))
      .constant("offset", floats({3}, {2, -1, 0.5f}))
      .constant("mean", floats({3}, {0, 0, 0}))
      .constant("variance", floats({3}, {1, 1, 1}))
      .node("Conv", "conv", {"x", "w"}, {"a"})
      .node("BatchNormalization", "norm", {"a", "scale", "offset", "mean", "variance"}, {"y"})
      .build({"y"});
}

void expect_bias(const std::string &what, const graph::Graph &g, const Shape &input) {
  const Tensor x = varied(input, 2);
  const Tensor *inputs[] = {&x};
  quant::PreparedModel prepared = quant::prepare(g, quant::Config("onnx"), QTN_QAT);
  quant::calibrate(prepared, inputs);
  Trainer trainer(prepared, attrs({{"loss", "mse"}, {"lr", 0.01}, {"freeze_bn", std::int64_t{1}}}));
  const Tensor converted = trainer.evaluate(inputs)[0];
  const Tensor *targets[] = {&converted};
  const double loss = trainer.backward(inputs, targets);
  if (!(loss < 1e-9)) fail_test(what, ": training is ", std::sqrt(loss), " from the converted model");
}

void a_bias_stays(void **) {
  for (const float factor : {1.0f, 1e-4f, 1e-6f, 1e-8f, 1e-20f, 1e-38f, 0.0f}) {
    expect_bias(cat("Gemm, weights times ", factor), matrix(factor), {8, 4});
    expect_bias(cat("Conv, weights times ", factor), normalized(factor), {8, 4, 1, 1});
  }
}

}  // namespace
}  // namespace qtn::train

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::train::a_bias_stays)};
  return cmocka_run_group_tests_name("train/small weights", tests, nullptr, nullptr);
}
