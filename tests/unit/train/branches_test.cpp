// SPDX-License-Identifier: Apache-2.0
// Networks that are no chains: truth values that follow from what is trained stop gradients, not the trainer, and
// gradients that lie in one place do not disturb each other.
#include <random>

#include "quant/graph_builder.hpp"
#include "train/trainer.hpp"
#include "varied.hpp"

namespace qtn::train {
namespace {

using namespace qtn::test;

std::vector<double> losses(const graph::Graph &network) {
  Trainer trainer(network, attrs({{"loss", "mse"}, {"optimizer", "adam"}, {"lr", 0.01}}));
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

/// Sums, signs and rectifications of what is there already, with a convolution here and there; what nothing reads is
/// added to the output. `apart`: the same by operators whose gradients never lie where that of their result does.
graph::Graph random_branches(std::uint32_t seed, bool apart) {
  GraphBuilder g;
  g.input("x", {4, 3, 5, 5}).conv("first", "x", "v0", 3, 6);
  g.constant("zero", Tensor::scalar(0.0f)).constant("minus", Tensor::scalar(-1.0f));
  std::mt19937 random(seed);
  std::vector<bool> read{false};
  const auto name = [](const char *of, std::size_t i) { return cat(of, i); };
  const auto any = [&] {
    // Most often something recent.
    const std::size_t back =
        std::min<std::size_t>(random() % 3 == 0 ? random() % read.size() : random() % 2, read.size() - 1);
    read[read.size() - 1 - back] = true;
    return name("v", read.size() - 1 - back);
  };
  const auto add = [&](const std::string &a, const std::string &b, const std::string &y) {
    if (!apart) return void(g.node("Add", "add_" + y, {a, b}, {y}));
    g.node("Mul", "mul_" + y, {b, "minus"}, {"negated_" + y}).node("Sub", "sub_" + y, {a, "negated_" + y}, {y});
  };
  const std::size_t count = 4 + random() % 10;
  for (std::size_t i = 1; i < count; ++i) {
    const std::string y = name("v", i), a = any();
    switch (random() % 6) {
      case 0:
        g.conv("conv_" + y, a, y, 6, 6);
        break;
      case 1:
        apart ? g.node("Mul", "neg_" + y, {a, "minus"}, {y}) : g.node("Neg", "neg_" + y, {a}, {y});
        break;
      case 2:
        if (apart)
          g.node("Greater", "greater_" + y, {a, "zero"}, {"above_" + y})
              .node("Where", "where_" + y, {"above_" + y, a, "zero"}, {y});
        else
          g.node("Relu", "relu_" + y, {a}, {y});
        break;
      default:
        add(a, any(), y);
    }
    read.push_back(false);
  }
  std::string output = name("v", read.size() - 1);
  for (std::size_t i = 0; i + 1 < read.size(); ++i) {
    if (read[i]) continue;
    add(output, name("v", i), name("sum", i));
    output = name("sum", i);
  }
  return g.build({output});
}

void shared_gradients_do_not_disturb_each_other(void **) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const std::vector<double> got = losses(random_branches(seed, false)), want = losses(random_branches(seed, true));
    for (std::size_t i = 0; i < want.size(); ++i)
      if (got[i] != want[i]) fail_test("seed ", seed, ", step ", i, ": the loss is ", got[i], ", not ", want[i]);
  }
}

}  // namespace
}  // namespace qtn::train

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::train::a_leaky_relu_by_where),
                              cmocka_unit_test(qtn::train::shared_gradients_do_not_disturb_each_other)};
  return cmocka_run_group_tests_name("train/branches", tests, nullptr, nullptr);
}
