// SPDX-License-Identifier: Apache-2.0
// NaN and infinities end a step with the name of the first tensor that has one, whatever would hide them, and leave the
// trainer as it was.
#include <limits>

#include "quant/graph_builder.hpp"
#include "train/trainer.hpp"
#include "varied.hpp"

namespace qtn::train {
namespace {

using namespace qtn::test;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

graph::Graph network() {
  GraphBuilder g;
  g.input("x", {4, 2, 3, 3})
      .constant("first.w", varied({3, 2, 1, 1}, 1))
      .constant("norm.scale", varied({3}, 2))
      .constant("norm.offset", varied({3}, 3))
      .constant("norm.mean", varied({3}, 4))
      .constant("norm.variance", Tensor::from<float>(QTN_FLOAT32, {3}, std::vector{1.0f, 2.0f, 0.5f}))
      .constant("last.w", varied({27, 5}, 5))
      .node("Conv", "first", {"x", "first.w"}, {"a"})
      .node("BatchNormalization", "norm", {"a", "norm.scale", "norm.offset", "norm.mean", "norm.variance"}, {"b"})
      .node("Relu", "relu", {"b"}, {"c"})
      .node("Flatten", "flatten", {"c"}, {"d"})
      .node("Gemm", "last", {"d", "last.w"}, {"y"});
  return g.build({"y"});
}

/// Running statistics frozen or not.
Attrs options(bool frozen) { return attrs({{"loss", "mse"}, {"lr", 0.01}, {"freeze_bn", std::int64_t{frozen}}}); }

Trainer floats(bool frozen = false) { return {network(), options(frozen)}; }
Trainer grids(bool frozen = false) {
  return {quant::prepare(network(), quant::Config("onnx"), QTN_QAT), options(frozen)};
}

Trainer learned_grids(const char *kind) {
  quant::Config config("onnx");
  const Attrs learning = attrs({{"activation_learning", kind}, {"weight_learning", "lsq"}});
  config.set("*", &learning);
  return {quant::prepare(network(), config, QTN_QAT), options(false)};
}

double backward(Trainer &trainer, const Tensor &x) {
  const Tensor target = varied({x.dim(0), 5}, 9);
  const Tensor *inputs[] = {&x}, *targets[] = {&target};
  return trainer.backward(inputs, targets);
}

const Tensor &parameter(const Trainer &trainer, const std::string &name) {
  const auto &all = trainer.parameters();
  return std::find_if(all.begin(), all.end(), [&](const Parameter &p) { return p.name == name; })->value;
}

Tensor image(float factor = 1) {
  Tensor x = varied({4, 2, 3, 3}, 6);
  for (std::int64_t i = 0; i < x.count(); ++i) x.as<float>()[i] *= factor;
  return x;
}

/// Fails, names the tensor, and what follows is as with `twin`, which has had the same steps without that one.
void expect_refused(Trainer &trainer, Trainer &twin, const Tensor &bad, const std::string &message) {
  expect_error(QTN_EINVAL, message, [&] { backward(trainer, bad); });
  const Tensor good = image();
  for (int i = 0; i < 2; ++i) {
    if (backward(trainer, good) != backward(twin, good)) fail_test(message, ": the next loss differs");
    trainer.update();
    twin.update();
  }
  for (std::size_t i = 0; i < trainer.parameters().size(); ++i)
    if (!same_bits(trainer.parameters()[i].value, twin.parameters()[i].value))
      fail_test(message, ": ", trainer.parameters()[i].name, " differs");
  for (std::size_t i = 0; i < trainer.buffers().size(); ++i)
    if (!same_bits(trainer.buffers()[i].value, twin.buffers()[i].value))
      fail_test(message, ": ", trainer.buffers()[i].name, " differs");
}

/// Without grids, with some that follow, some that stay, and some that are learned.
template <class Body>
void each_trainer(const Body &body) {
  for (const std::string kind : {"floats", "followed", "fixed", "lsq+", "pact"}) {
    const auto make = [&] {
      if (kind == "lsq+" || kind == "pact") return learned_grids(kind.c_str());
      return kind == "floats" ? floats() : grids();
    };
    Trainer trainer = make(), twin = make();
    for (Trainer *t : {&trainer, &twin}) {
      backward(*t, image());
      t->update();
      if (kind == "fixed") t->set(attrs({{"observers", std::int64_t{0}}, {"freeze_bn", std::int64_t{1}}}));
    }
    body(trainer, twin);
  }
}

void in_inputs(void **) {
  for (const float bad : {kNan, kInfinity, -kInfinity})
    each_trainer([&](Trainer &trainer, Trainer &twin) {
      const Tensor x = image();
      x.as<float>()[x.count() - 1] = bad;
      expect_refused(trainer, twin, x, "at step 1; the first tensor that is not finite is \"x\"");
    });
}

void in_parameters(void **) {
  for (const char *name : {"first.w", "norm.scale", "last.w"})
    each_trainer([&](Trainer &trainer, Trainer &twin) {
      float &value = parameter(trainer, name).as<float>()[1];
      const float before = std::exchange(value, kNan);
      expect_error(QTN_EINVAL, cat("the first tensor that is not finite is \"", name, "\""),
                   [&] { backward(trainer, image()); });
      value = before;
      const Tensor bad = image(kInfinity);
      expect_refused(trainer, twin, bad, "\"x\"");
    });
}

/// A batch of no samples has no mean.
void in_nothing(void **) {
  graph::Graph any_batch = network();
  (*any_batch.value(any_batch.inputs[0]).shape)[0] = -1;
  Trainer trainer(any_batch, options(false)), twin(any_batch, options(false));
  expect_refused(trainer, twin, Tensor(QTN_FLOAT32, Shape{0, 2, 3, 3}),
                 "node \"norm\": a batch of shape 0x3x3x3 has no mean to normalize by");
}

/// Weights that are finite, but whose sums are not.
void in_sums(void **) {
  for (const bool fixed : {false, true}) {
    Trainer trainer = grids(), twin = grids();
    for (Trainer *t : {&trainer, &twin}) {
      backward(*t, image());
      t->update();
      t->set(attrs({{"observers", std::int64_t{!fixed}}, {"freeze_bn", std::int64_t{fixed}}}));
    }
    const Tensor &weights = parameter(trainer, "first.w"), &scale = parameter(trainer, "norm.scale");
    const Tensor weights_before = weights.clone(), scale_before = scale.clone();
    std::fill_n(weights.as<float>(), weights.count(), 2.2e38f);
    std::fill_n(scale.as<float>(), scale.count(), 1.0f);
    expect_error(QTN_EINVAL, "the first tensor that is not finite is \"a\"", [&] { backward(trainer, image()); });
    copy_elements(weights, weights_before);
    copy_elements(scale, scale_before);
    expect_refused(trainer, twin, image(kNan), "\"x\"");
  }
}

/// The loss is a double, and the square of what floats still hold.
void in_gradients(void **) {
  const Tensor large = image(1e26f);
  for (const bool quantized : {false, true}) {
    const auto make = [&] { return quantized ? grids(true) : floats(true); };
    const std::string message = "at step 0; the first tensor whose gradient is not finite is \"";
    Trainer trainer = make(), twin = make();
    expect_error(QTN_EINVAL, {"the loss is ", message}, [&] { backward(trainer, large); });
    for (const Parameter &p : trainer.parameters())
      for (std::int64_t i = 0; i < p.gradient.count(); ++i)
        if (p.gradient.as<const float>()[i] != 0) fail_test("the gradient of ", p.name, " is not 0");
    expect_refused(trainer, twin, large, message);

    Trainer parts = make(), whole = make();
    backward(parts, image());
    backward(whole, image());
    expect_refused(parts, whole, large, message);
  }
}

}  // namespace
}  // namespace qtn::train

int main() {
  using namespace qtn::train;
  const CMUnitTest tests[] = {
      cmocka_unit_test(in_inputs), cmocka_unit_test(in_parameters), cmocka_unit_test(in_nothing),
      cmocka_unit_test(in_sums),   cmocka_unit_test(in_gradients),
  };
  return cmocka_run_group_tests_name("bad numbers", tests, nullptr, nullptr);
}
