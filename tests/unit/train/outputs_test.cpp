// SPDX-License-Identifier: Apache-2.0
// Outputs that are not what a loss expects: one value twice, and a constant.
#include <cmath>

#include "quant/graph_builder.hpp"
#include "train/trainer.hpp"
#include "varied.hpp"

namespace qtn::train {
namespace {

using namespace qtn::test;

GraphBuilder convolution() {
  GraphBuilder b;
  b.input("x", {4, 3, 5, 5}).conv("conv", "x", "y", 3, 6);
  return b;
}

std::vector<double> losses(const graph::Graph &network, std::vector<Shape> shapes) {
  Trainer trainer(network, attrs({{"loss", "mse"}, {"lr", 0.1}}));
  const Tensor x = varied({4, 3, 5, 5}, 1), *inputs[] = {&x};
  std::vector<Tensor> targets;
  std::vector<const Tensor *> pointers;
  for (const Shape &shape : shapes) targets.push_back(varied(shape, static_cast<int>(2 + targets.size())));
  for (const Tensor &t : targets) pointers.push_back(&t);
  std::vector<double> all;
  for (int i = 0; i < 5; ++i) {
    all.push_back(trainer.backward(inputs, pointers));
    trainer.update();
  }
  return all;
}

void expect_equal(const std::vector<double> &got, const std::vector<double> &want) {
  for (std::size_t i = 0; i < want.size(); ++i)
    if (got[i] != want[i]) fail_test("step ", i, ": the loss is ", got[i], ", not ", want[i]);
}

/// Both losses count, whether the second output is the same memory or a copy.
void one_value_twice(void **) {
  const Shape y{4, 6, 5, 5}, flat{4, 150};
  GraphBuilder view = convolution(), copy = convolution();
  view.constant("shape", Tensor::from_ints(std::vector<std::int64_t>{4, -1}))
      .node("Reshape", "reshape", {"y", "shape"}, {"z"});
  copy.constant("shape", Tensor::from_ints(std::vector<std::int64_t>{4, -1})).constant("one", Tensor::scalar(1.0f));
  copy.node("Mul", "mul", {"y", "one"}, {"m"}).node("Reshape", "reshape", {"m", "shape"}, {"z"});
  expect_equal(losses(view.build({"y", "z"}), {y, flat}), losses(copy.build({"y", "z"}), {y, flat}));
  GraphBuilder twice = convolution();
  twice.constant("one", Tensor::scalar(1.0f)).node("Mul", "mul", {"y", "one"}, {"z"});
  expect_equal(losses(convolution().build({"y", "y"}), {y, y}), losses(twice.build({"y", "z"}), {y, y}));
}

/// Nothing is trained by it, and its loss stays what it is.
void a_constant(void **) {
  const Shape y{4, 6, 5, 5};
  GraphBuilder b = convolution();
  b.constant("c", varied({2, 3}, 5)).node("Relu", "relu", {"c"}, {"z"});
  const std::vector<double> alone = losses(convolution().build({"y"}), {y}),
                            both = losses(b.build({"y", "z"}), {y, {2, 3}});
  for (std::size_t i = 0; i < alone.size(); ++i) {
    const double constant = both[0] - alone[0];
    assert_true(constant > 0);
    assert_true(std::fabs(both[i] - alone[i] - constant) < 1e-12);
  }
}

/// An image without pixels has no loss, but ends.
void no_pixels(void **) {
  GraphBuilder b;
  b.input("x", {4, 3, 0, 5}).constant("w", varied({6, 3, 1, 1}, 1));
  b.node("Conv", "conv", {"x", "w"}, {"y"}, attrs({{"auto_pad", std::string("SAME_UPPER")}}));
  Trainer trainer(b.build({"y"}), attrs({{"loss", "mse"}}));
  const Tensor x(QTN_FLOAT32, Shape{4, 3, 0, 5}), target(QTN_FLOAT32, Shape{4, 6, 0, 5});
  const Tensor *inputs[] = {&x}, *targets[] = {&target};
  expect_error(QTN_EINVAL, "the batch is empty, an output is 4x6x0x5", [&] { trainer.backward(inputs, targets); });
}

/// A network of which nothing becomes integers trains with grids as it does in float, and is converted to itself.
void nothing_in_integers(void **) {
  GraphBuilder b;
  b.input("x", {4, 6}).constant("s", varied({6}, 1)).constant("b", varied({6}, 2));
  b.node("LayerNormalization", "norm", {"x", "s", "b"}, {"y"});
  Trainer trainer(quant::prepare(b.build({"y"}), quant::Config("onnx"), QTN_QAT), attrs({{"loss", "mse"}}));
  const Tensor x = varied({4, 6}, 3), target = varied({4, 6}, 4);
  const Tensor *inputs[] = {&x}, *targets[] = {&target};
  trainer.backward(inputs, targets);
  trainer.update();
  const graph::Graph converted = quant::convert(*trainer.prepared(), nullptr);
  assert_int_equal(converted.nodes.size(), 1);
  assert_true(converted.nodes[0].op->name == std::string_view("LayerNormalization"));
}

}  // namespace
}  // namespace qtn::train

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::train::one_value_twice), cmocka_unit_test(qtn::train::a_constant),
                              cmocka_unit_test(qtn::train::no_pixels),
                              cmocka_unit_test(qtn::train::nothing_in_integers)};
  return cmocka_run_group_tests_name("train/outputs", tests, nullptr, nullptr);
}
