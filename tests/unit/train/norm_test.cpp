// SPDX-License-Identifier: Apache-2.0
// A normalization without a layer before it is trained in float and becomes a convolution of one weight a channel: by
// every recipe without loss, whatever it does to weights.
#include "quant/graph_builder.hpp"
#include "train/trainer.hpp"
#include "varied.hpp"

namespace qtn::train {
namespace {

using namespace qtn::test;

graph::Graph network() {
  GraphBuilder g;
  g.input("x", {4, 3, 4, 4})
      .constant("scale", Tensor::from<float>(QTN_FLOAT32, {3}, std::vector{1.5f, -0.003f, 0.7f}))
      .constant("offset", varied({3}, 1))
      .constant("mean", varied({3}, 2))
      .constant("variance", Tensor::from<float>(QTN_FLOAT32, {3}, std::vector{1.0f, 2.0f, 0.5f}))
      .constant("last.w", varied({2, 3, 1, 1}, 3))
      .node("BatchNormalization", "norm", {"x", "scale", "offset", "mean", "variance"}, {"a"})
      .node("Relu", "relu", {"a"}, {"b"})
      .node("Conv", "last", {"b", "last.w"}, {"y"});
  return g.build({"y"});
}

const graph::Value &value_of(const graph::Graph &g, const std::string &name) {
  const auto at = std::find_if(g.values.begin(), g.values.end(), [&](const auto &v) { return v.name == name; });
  if (at == g.values.end()) fail_test("no tensor ", name);
  return *at;
}

void expect_exact(const std::string &what, const quant::Config &config) {
  Trainer trainer(quant::prepare(network(), config, QTN_QAT), attrs({{"loss", "mse"}, {"lr", 0.05}}));
  const Tensor x = varied({4, 3, 4, 4}, 4), target = varied({4, 2, 4, 4}, 5);
  const Tensor *inputs[] = {&x}, *targets[] = {&target};
  for (int i = 0; i < 3; ++i) {
    trainer.backward(inputs, targets);
    trainer.update();
  }
  const graph::Graph trained = trainer.snapshot(), converted = quant::convert(*trainer.prepared(), nullptr);
  const auto at = [&](const char *name, std::size_t c) {
    return static_cast<double>(value_of(trained, name).constant.as<const float>()[c]);
  };
  const std::vector<float> weights =
      float_values(dequantize(value_of(converted, "scale_quantized").constant), "weights");
  for (std::size_t c = 0; c < 3; ++c) {
    const double gain = at("scale", c) / std::sqrt(at("variance", c) + 1e-5);
    if (!(std::fabs(static_cast<double>(weights[c]) - gain) <= 1e-6 * std::fabs(gain)))
      fail_test(what, ": channel ", c, " is multiplied by ", weights[c], ", not ", gain);
  }
}

void without_loss(void **) {
  for (const char *recipe : {"onnx", "fbgemm", "x86", "qnnpack", "onednn", "nvidia", "tflite"}) {
    expect_exact(recipe, quant::Config(recipe));
    for (const std::int64_t bits : {2, 3, 4, 5}) {
      quant::Config few(recipe);
      const Attrs weights = attrs({{"weight_bits", bits}});
      few.set("*", &weights);
      expect_exact(cat(recipe, " with ", bits, " bits"), few);
    }
  }
}

/// Equalization folds normalizations before training, but those that stand alone.
void is_trained_when_equalized(void **) {
  quant::Config config("onnx");
  const Attrs equalize = attrs({{"equalize", std::int64_t{1}}});
  config.set("*", &equalize);
  const Trainer trainer(quant::prepare(network(), config, QTN_QAT), attrs({{"loss", "mse"}}));
  std::string names;
  for (const Parameter &p : trainer.parameters()) names += p.name + " ";
  if (names != "scale offset last.w ") fail_test("trained are ", names);
}

}  // namespace
}  // namespace qtn::train

int main() {
  using namespace qtn::train;
  const CMUnitTest tests[] = {cmocka_unit_test(without_loss), cmocka_unit_test(is_trained_when_equalized)};
  return cmocka_run_group_tests_name("norm", tests, nullptr, nullptr);
}
