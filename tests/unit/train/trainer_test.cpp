// SPDX-License-Identifier: Apache-2.0
// Whole networks, step by step beside PyTorch.
#include "train/trainer.hpp"

#include "onnx/onnx.hpp"
#include "ops/support.hpp"

namespace qtn::train {
namespace {

using namespace qtn::test;

const std::filesystem::path kFolder = std::filesystem::path(QTN_GOLDEN_DIR) / "training";

Attrs options(const nlohmann::json &golden) {
  Attrs attrs;
  for (const char *key : {"lr", "momentum", "weight_decay"}) attrs.set(key, golden.at(key).get<double>());
  return attrs;
}

/// Batch i of those that the file has.
struct Batches {
  explicit Batches(const nlohmann::json &golden)
      : x(tensor_of(golden.at("x"))), labels(tensor_of(golden.at("labels"))) {}
  Tensor input(std::size_t i) const { return x.select(0, at(i)); }
  Tensor target(std::size_t i) const { return labels.select(0, at(i)); }
  std::int64_t at(std::size_t i) const { return static_cast<std::int64_t>(i) % x.dim(0); }
  Tensor x, labels;
};

double step(Trainer &trainer, const Batches &batches, std::size_t i) {
  const Tensor x = batches.input(i), target = batches.target(i);
  const Tensor *inputs[] = {&x}, *targets[] = {&target};
  const double loss = trainer.backward(inputs, targets);
  trainer.update();
  return loss;
}

std::vector<double> doubles(const Tensor &t) {
  std::vector<double> values;
  for (const float v : float_values(t, "t")) values.push_back(static_cast<double>(v));
  return values;
}

void expect_near(const std::string &what, const std::vector<double> &got, const nlohmann::json &want,
                 double tolerance) {
  const auto &data = want.at("data");
  if (got.size() != data.size()) fail_test(what, " has ", got.size(), " values, not ", data.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(std::fabs(got[i] - number(data[i])) <= tolerance * (1 + std::fabs(number(data[i])))))
      fail_test(what, "[", i, "] is ", got[i], ", in PyTorch ", number(data[i]));
}

void expect_trained(const Trainer &trainer, const nlohmann::json &golden, double tolerance) {
  const graph::Graph g = trainer.snapshot();
  for (const auto &[name, want] : golden.at("state").items()) {
    const auto at = std::find_if(g.values.begin(), g.values.end(), [&n = name](const auto &v) { return v.name == n; });
    if (at == g.values.end()) fail_test("no constant ", name);
    expect_near(name, doubles(at->constant), want, tolerance);
  }
}

/// `of_outputs`: of networks with grids larger, for a value half way between two steps may be rounded to either.
void train_beside(Trainer &trainer, const nlohmann::json &golden, double of_outputs, std::size_t freeze_at) {
  constexpr double tolerance = 1e-4;
  const Batches batches(golden);
  std::vector<double> losses;
  for (std::size_t i = 0; i < golden.at("losses").at("data").size(); ++i) {
    if (i == freeze_at) {
      Attrs frozen;
      frozen.set("freeze_bn", std::int64_t{1});
      frozen.set("observers", std::int64_t{0});
      trainer.set(frozen);
    }
    losses.push_back(step(trainer, batches, i));
  }
  expect_near("loss", losses, golden.at("losses"), tolerance);
  expect_trained(trainer, golden, tolerance);
  const Tensor x = batches.input(0);
  const Tensor *inputs[] = {&x};
  expect_near("output", doubles(trainer.evaluate(inputs)[0]), golden.at("outputs"), of_outputs);
}

void trains_floats_as_pytorch(void **) {
  const auto golden = read_json(kFolder / "float.json");
  Trainer trainer(onnx::load(kFolder / "float.onnx"), options(golden));
  train_beside(trainer, golden, 1e-4, SIZE_MAX);
}

void trains_grids_as_pytorch(void **) {
  for (const char *name : {"qat", "frozen"}) {
    const auto golden = read_json(kFolder / cat(name, ".json"));
    quant::Config config("onednn");
    // Without it the largest weight of a channel lies half way between two integers.
    Attrs narrow;
    narrow.set("weight_narrow_range", std::int64_t{1});
    config.set("*", &narrow);
    Trainer trainer(quant::prepare(onnx::load(kFolder / "qat.onnx"), config, QTN_QAT), options(golden));
    train_beside(trainer, golden, 5e-3, std::string_view(name) == "frozen" ? 10 : SIZE_MAX);
  }
}

}  // namespace
}  // namespace qtn::train

int main() {
  using namespace qtn::train;
  const CMUnitTest tests[] = {
      cmocka_unit_test(trains_floats_as_pytorch),
      cmocka_unit_test(trains_grids_as_pytorch),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
