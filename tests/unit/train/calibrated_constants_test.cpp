// SPDX-License-Identifier: Apache-2.0
// A trainer of a calibrated model begins with the grids that conversion without training has, also where constants share
// them or have one of their own.
#include "quant/calibrate.hpp"
#include "quant/graph_builder.hpp"
#include "runtime/session.hpp"
#include "train/trainer.hpp"
#include "varied.hpp"

namespace qtn::train {
namespace {

using namespace qtn::test;

using Inputs = std::vector<const Tensor *>;

std::vector<Tensor> without_training(const graph::Graph &g, const Inputs &inputs) {
  quant::PreparedModel prepared = quant::prepare(g, quant::Config("onnx"), QTN_PTQ);
  quant::calibrate(prepared, inputs);
  return runtime::Session(quant::convert(prepared, nullptr), {}).run(inputs);
}

void expect_same_grids(const char *what, const graph::Graph &g, const Inputs &inputs) {
  quant::PreparedModel prepared = quant::prepare(g, quant::Config("onnx"), QTN_QAT);
  quant::calibrate(prepared, inputs);
  Trainer trainer(prepared, attrs({{"loss", "mse"}, {"lr", 0.01}}));
  const Tensor want = without_training(g, inputs)[0];
  if (!same_bits(trainer.evaluate(inputs)[0], want)) fail_test(what, " is not rounded as without training");
  const Tensor *targets[] = {&want};
  // Both round to one grid, except for what float sums leave.
  if (const double loss = trainer.backward(inputs, targets); !(loss < 1e-9)) fail_test(what, ": the loss is ", loss);
  trainer.update();
  quant::convert(*trainer.prepared(), nullptr);
}

Tensor flags(const std::vector<int> &values) {
  Tensor t(QTN_BOOL, {static_cast<std::int64_t>(values.size())});
  std::ranges::copy(values, t.as<bool>());
  return t;
}

void shared_with_activations(void **) {
  const Tensor x = varied({8, 4}, 1);
  const auto product = [](std::int64_t depth) {
    return GraphBuilder().input("x", {8, 4}).constant("w", varied({depth, 3}, 2));
  };
  const auto end = [](GraphBuilder g) { return g.node("MatMul", "product", {"z", "w"}, {"y"}).build({"y"}); };
  expect_same_grids("Concat",
                    end(product(5)
                            .constant("c", floats({8, 1}, std::vector<float>(8, 20.0f)))
                            .node("Concat", "concat", {"x", "c"}, {"z"}, attrs({{"axis", std::int64_t{1}}}))),
                    {&x});
  expect_same_grids(
      "Max", end(product(4).constant("c", floats({4}, {-9, 9, 9, 0})).node("Max", "max", {"x", "c"}, {"z"})), {&x});
  for (const float other : {15.0f, -1e9f})  // the last is a mask, which takes no steps from the rest
    expect_same_grids("Where",
                      end(product(4)
                              .constant("k", flags({1, 0, 1, 1}))
                              .constant("c", Tensor::scalar(other))
                              .node("Where", "where", {"k", "x", "c"}, {"z"})),
                      {&x});
}

void of_tables(void **) {
  const Tensor ids = Tensor::from<std::int64_t>(QTN_INT64, {2, 3}, std::vector<std::int64_t>{0, 6, 3, 3, 1, 5});
  const auto table = [] {
    return GraphBuilder()
        .input("ids", {2, 3}, QTN_INT64)
        .constant("table", varied({7, 4}, 3))
        .constant("w", varied({4, 3}, 4))
        .node("Gather", "look_up", {"table", "ids"}, {"a"});
  };
  expect_same_grids("Gather", table().node("MatMul", "product", {"a", "w"}, {"y"}).build({"y"}), {&ids});
  expect_same_grids(
      "Gather and Relu",
      table().node("Relu", "relu", {"a"}, {"b"}).node("MatMul", "product", {"b", "w"}, {"y"}).build({"y"}), {&ids});
}

}  // namespace
}  // namespace qtn::train

int main() {
  using namespace qtn::train;
  const CMUnitTest tests[] = {cmocka_unit_test(shared_with_activations), cmocka_unit_test(of_tables)};
  return cmocka_run_group_tests_name("train/calibrated constants", tests, nullptr, nullptr);
}
