// SPDX-License-Identifier: Apache-2.0
// Truth values that follow from what is trained stop gradients, not the trainer.
#include "quant/graph_builder.hpp"
#include "train/trainer.hpp"
#include "varied.hpp"

namespace qtn::train {
namespace {

using namespace qtn::test;

std::vector<double> losses(const graph::Graph &network) {
  Trainer trainer(network, attrs({{"loss", "mse"}, {"lr", 0.1}}));
  const Tensor x = varied({4, 3, 5, 5}, 1), target = varied({4, 6, 5, 5}, 2);
  const Tensor *inputs[] = {&x}, *targets[] = {&target};
  std::vector<double> all;
  for (int i = 0; i < 5; ++i) {
    all.push_back(trainer.backward(inputs, targets));
    trainer.update();
  }
  return all;
}

void a_leaky_relu_by_where(void **) {
  const Attrs none;
  const graph::Graph branches = GraphBuilder()
                                    .input("x", {4, 3, 5, 5})
                                    .conv("conv", "x", "h", 3, 6)
                                    .constant("zero", Tensor::scalar(0.0f))
                                    .constant("slope", Tensor::scalar(0.01f))
                                    .node("Greater", "greater", {"h", "zero"}, {"above"})
                                    .node("Mul", "mul", {"h", "slope"}, {"small"})
                                    .node("Where", "where", {"above", "h", "small"}, {"y"})
                                    .build({"y"});
  const graph::Graph whole = GraphBuilder()
                                 .input("x", {4, 3, 5, 5})
                                 .conv("conv", "x", "h", 3, 6)
                                 .node("LeakyRelu", "leaky", {"h"}, {"y"}, none)
                                 .build({"y"});
  const std::vector<double> got = losses(branches), want = losses(whole);
  assert_true(want[4] < want[0]);
  for (std::size_t i = 0; i < want.size(); ++i)
    if (got[i] != want[i]) fail_test("step ", i, ": the loss is ", got[i], ", not ", want[i]);
}

}  // namespace
}  // namespace qtn::train

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::train::a_leaky_relu_by_where)};
  return cmocka_run_group_tests_name("train/branches", tests, nullptr, nullptr);
}
