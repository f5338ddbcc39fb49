// SPDX-License-Identifier: Apache-2.0
// Files exported in training mode are trained as those in evaluation mode, and refused by all else,
// unless they see no batch.
#include <algorithm>
#include <cmath>

#include "quant/graph_builder.hpp"
#include "runtime/session.hpp"
#include "train/trainer.hpp"
#include "varied.hpp"

namespace qtn::train {
namespace {

using namespace qtn::test;

enum class Form {
  evaluation,
  masked,  // a mask is declared, which nothing reads
  training,
  old  // before opset 14, when outputs said so
};

Tensor flag(bool value) {
  Tensor t(QTN_BOOL, {});
  *t.as<bool>() = value;
  return t;
}

GraphBuilder network(Form form) {
  const bool training = form == Form::training;
  std::vector<std::string> normalized{"b"}, dropped{"c", "ratio"}, made{"d"};
  if (training || form == Form::old) normalized.insert(normalized.end(), {"mean.out", "variance.out"});
  if (form == Form::old) normalized.insert(normalized.end(), {"saved.mean", "saved.variance"});
  if (training) dropped.push_back("drops");
  if (form == Form::masked) made.push_back("mask");
  GraphBuilder g;
  g.input("x", {4, 2, 3, 3})
      .constant("ratio", Tensor::scalar(0.25f))
      .constant("drops", flag(true))
      .constant("first.w", varied({3, 2, 1, 1}, 1))
      .constant("scale", varied({3}, 2))
      .constant("offset", varied({3}, 3))
      .constant("mean", varied({3}, 4))
      .constant("variance", Tensor::from<float>(QTN_FLOAT32, {3}, std::vector{1.0f, 2.0f, 0.5f}))
      .constant("last.w", varied({27, 5}, 5))
      .node("Conv", "first", {"x", "first.w"}, {"a"})
      .node("BatchNormalization", "norm", {"a", "scale", "offset", "mean", "variance"}, normalized,
            training ? attrs({{"training_mode", std::int64_t{1}}}) : Attrs())
      .node("Relu", "relu", {"b"}, {"c"})
      .node("Dropout", "dropout", dropped, made)
      .node("Flatten", "flatten", {"d"}, {"e"})
      .node("Gemm", "last", {"e", "last.w"}, {"y"});
  return g;
}

graph::Graph graph_of(Form form) { return network(form).build({"y"}); }

const Attrs kOptions = attrs({{"loss", "mse"}, {"lr", 0.05}, {"seed", std::int64_t{3}}});

Trainer trainer_of(Form form, bool quantized) {
  if (!quantized) return {graph_of(form), kOptions};
  return {quant::prepare(graph_of(form), quant::Config("onnx"), QTN_QAT), kOptions};
}

void is_trained_as_in_evaluation_mode(void **) {
  const Tensor x = varied({4, 2, 3, 3}, 6), target = varied({4, 5}, 7);
  const Tensor *inputs[] = {&x}, *targets[] = {&target};
  for (const bool quantized : {false, true})
    for (const Form form : {Form::masked, Form::training, Form::old}) {
      Trainer trainer = trainer_of(form, quantized), wanted = trainer_of(Form::evaluation, quantized);
      for (int i = 0; i < 5; ++i) {
        if (trainer.backward(inputs, targets) != wanted.backward(inputs, targets)) fail_test("loss ", i, " differs");
        trainer.update();
        wanted.update();
      }
      if (!same_bits(trainer.evaluate(inputs)[0], wanted.evaluate(inputs)[0])) fail_test("answers differ");
      const graph::Graph trained = quantized ? quant::convert(*trainer.prepared(), nullptr) : trainer.snapshot();
      runtime::Session(trained, {}).run(inputs);
    }
}

void all_else_refuses_it(void **) {
  for (const Form form : {Form::training, Form::old}) {
    const graph::Graph g = graph_of(form);
    const char *const why = "node \"norm\": BatchNormalization is in training mode, which trainers take";
    expect_error(QTN_EUNSUPPORTED, why, [&] { runtime::Session(g, {}); });
    expect_error(QTN_EUNSUPPORTED, why, [&] { quant::prepare(g, quant::Config("onnx"), QTN_PTQ); });
  }
  GraphBuilder dropout;
  dropout.input("x", {2, 3})
      .constant("ratio", Tensor::scalar(0.5f))
      .constant("drops", flag(true))
      .node("Dropout", "dropout", {"x", "ratio", "drops"}, {"y", "mask"});
  const graph::Graph plain = dropout.build({"y"});
  expect_error(QTN_EUNSUPPORTED, "node \"dropout\": Dropout is in training mode", [&] { runtime::Session(plain, {}); });
}

/// Weights that are standardized by a BatchNormalization see no batch: their mean becomes 0, their variance 1.
void weights_are_standardized(void **) {
  const Tensor one = Tensor::from<float>(QTN_FLOAT32, {1}, std::vector{1.0f}), zero(QTN_FLOAT32, {1});
  *zero.as<float>() = 0;
  GraphBuilder g;
  g.input("x", {1, 1, 4})
      .constant("w", Tensor::from<float>(QTN_FLOAT32, {1, 1, 4}, std::vector{1.0f, 3.0f, 5.0f, 7.0f}))
      .constant("one", one)
      .constant("zero", zero)
      .node("BatchNormalization", "norm", {"w", "one", "zero", "zero", "one"}, {"standard"},
            attrs({{"training_mode", std::int64_t{1}}, {"epsilon", 0.0}}))
      .node("Add", "add", {"x", "standard"}, {"y"});
  const Tensor x(QTN_FLOAT32, {1, 1, 4});
  std::fill_n(x.as<float>(), 4, 0.0f);
  const Tensor *inputs[] = {&x};
  const Tensor y = runtime::Session(g.build({"y"}), {}).run(inputs)[0];
  const double deviation = std::sqrt(5.0);  // of 1, 3, 5, 7, whose mean is 4
  for (int i = 0; i < 4; ++i) assert_true(std::fabs(y.as<float>()[i] - (2 * i - 3) / deviation) < 1e-6);
}

void statistics_that_are_read_are_refused(void **) {
  const graph::Graph g = network(Form::training).build({"y", "mean.out"});
  expect_error(QTN_EUNSUPPORTED,
               "node \"norm\": BatchNormalization is in training mode, and more than its first output",
               [&] { Trainer(g, kOptions); });
}

}  // namespace
}  // namespace qtn::train

int main() {
  using namespace qtn::train;
  const CMUnitTest tests[] = {
      cmocka_unit_test(is_trained_as_in_evaluation_mode),
      cmocka_unit_test(all_else_refuses_it),
      cmocka_unit_test(weights_are_standardized),
      cmocka_unit_test(statistics_that_are_read_are_refused),
  };
  return cmocka_run_group_tests_name("training mode", tests, nullptr, nullptr);
}
