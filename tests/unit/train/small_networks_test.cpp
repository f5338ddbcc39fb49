// SPDX-License-Identifier: Apache-2.0
// Small networks with something unusual, and what PyTorch makes of them: what a gradient needs comes from an input or a table, a
// file has equal constants once, a mean is far from the running one, a module is used twice.
#include "onnx/onnx.hpp"
#include "quant/graph_builder.hpp"
#include "train/support.hpp"
#include "train/trainer.hpp"

namespace qtn::train {
namespace {

using namespace qtn::test;

const std::filesystem::path kFolder = std::filesystem::path(QTN_GOLDEN_DIR) / "training";

void expect_near(const std::string &what, const Tensor &got, const Tensor &want) {
  const std::vector<float> a = float_values(got, "got"), b = float_values(want, "want");
  assert_int_equal(a.size(), b.size());
  for (std::size_t i = 0; i < b.size(); ++i)
    if (!(std::fabs(a[i] - b[i]) <= 3e-4f * (1 + std::fabs(b[i]))))
      fail_test(what, "[", i, "] is ", a[i], ", in PyTorch ", b[i]);
}

struct Run {
  explicit Run(const nlohmann::json &golden)
      : name(golden.at("name").get<std::string>()),
        trainer(onnx::load(kFolder / cat("small_", name, ".onnx")),
                attrs({{"loss", "mse"}, {"lr", golden.at("lr").get<double>()}})),
        target(tensor_of(golden.at("target"))) {
    for (const auto &input : golden.at("inputs")) inputs.push_back(tensor_of(input));
    for (const Tensor &t : inputs) given.push_back(&t);
  }

  double backward() {
    const Tensor *targets[] = {&target};
    return trainer.backward(given, targets);
  }

  std::string name;
  Trainer trainer;
  Tensor target;
  std::vector<Tensor> inputs;
  std::vector<const Tensor *> given;
};

void are_trained_as_in_pytorch(void **) {
  const nlohmann::json file = read_json(kFolder / "small.json");
  for (const auto &golden : file.at("cases")) {
    Run run(golden);
    std::vector<float> losses;
    const Tensor want = tensor_of(golden.at("losses"));
    for (std::int64_t i = 0; i < want.count(); ++i) {
      losses.push_back(static_cast<float>(run.backward()));
      run.trainer.update();
    }
    expect_near(run.name + ": loss", floats(want.shape(), losses), want);
    const graph::Graph trained = run.trainer.snapshot();
    for (const auto &[key, value] : golden.at("state").items())
      expect_near(cat(run.name, ": ", key), value_named(trained, key).constant, tensor_of(value));
    expect_near(run.name + ": output", run.trainer.evaluate(run.given)[0], tensor_of(golden.at("outputs")));
  }
}

/// What is trained with statistics that stay is the model that is written.
void normalize_by_the_statistics_of_the_model(void **) {
  const nlohmann::json file = read_json(kFolder / "small.json");
  for (const auto &golden : file.at("cases")) {
    Run run(golden);
    for (int i = 0; i < 3; ++i) {
      run.backward();
      run.trainer.update();
    }
    run.trainer.set(attrs({{"freeze_bn", std::int64_t{1}}}));
    const Tensor y = run.trainer.evaluate(run.given)[0];
    double want = 0;
    for (std::int64_t i = 0; i < y.count(); ++i)
      want += std::pow(y.as<const float>()[i] - run.target.as<const float>()[i], 2.0) / static_cast<double>(y.count());
    const double loss = run.backward();
    if (!(std::fabs(loss - want) <= 1e-4 * want)) fail_test(run.name, ": the loss is ", loss, ", of the model ", want);
  }
}

/// Batches between two updates move statistics that two nodes share by the mean of what each batch makes of them.
void batches_move_shared_statistics(void **) {
  const nlohmann::json cases = read_json(kFolder / "small.json").at("cases");
  const auto golden = std::ranges::find_if(cases, [](const auto &c) { return c.at("name") == "module_twice"; });
  Run once(*golden), twice(*golden);
  once.backward();
  once.trainer.update();
  twice.backward();
  twice.backward();
  twice.trainer.update();
  const graph::Graph got = twice.trainer.snapshot(), want = once.trainer.snapshot();
  for (const char *name : {"mean", "variance", "w"})
    expect_near(name, value_named(got, name).constant, value_named(want, name).constant);
  assert_int_equal(once.trainer.buffers().size(), 2);
}

}  // namespace
}  // namespace qtn::train

int main() {
  using namespace qtn::train;
  const CMUnitTest tests[] = {
      cmocka_unit_test(are_trained_as_in_pytorch),
      cmocka_unit_test(normalize_by_the_statistics_of_the_model),
      cmocka_unit_test(batches_move_shared_statistics),
  };
  return cmocka_run_group_tests_name("train/small networks", tests, nullptr, nullptr);
}
