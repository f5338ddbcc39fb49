// SPDX-License-Identifier: Apache-2.0
// What is trained, floats on their grids, is what the converted model computes in integers; and what a trainer
// evaluates.
#include "../sums.hpp"
#include "graph/evaluate.hpp"
#include "quant/graph_builder.hpp"
#include "runtime/session.hpp"
#include "train/program.hpp"
#include "train/trainer.hpp"
#include "varied.hpp"

namespace qtn::train {
namespace {

using namespace qtn::test;

Tensor filled(const Shape &shape, std::initializer_list<float> pattern) {
  Tensor t(QTN_FLOAT32, shape);
  for (std::int64_t i = 0; i < t.count(); ++i)
    t.as<float>()[i] = pattern.begin()[static_cast<std::size_t>(i) % pattern.size()];
  return t;
}

Tensor weights(const Shape &shape, std::int64_t seed) {
  Tensor t = varied(shape, seed);
  for (std::int64_t i = 0; i < t.count(); ++i) t.as<float>()[i] *= 0.4f;
  return t;
}

class Layers : public GraphBuilder {
 public:
  /// Convolution and normalization. Scales 0 and below are among those of the latter.
  Layers &block(const std::string &name, const std::string &x, const std::string &y, const Shape &weight,
                const Attrs &conv_attrs, const char *op = "Conv") {
    const bool transposed = op != std::string_view("Conv");
    const Shape channels{transposed ? weight[1] * conv_attrs.get_int("group", 1) : weight[0]};
    constant(name + ".w", weights(weight, weight[0]));
    constant(name + ".scale", filled(channels, {1.5f, 0, -0.75f, 0.5f, 1}));
    constant(name + ".offset", filled(channels, {0.25f, 0.5f, -0.125f}));
    constant(name + ".mean", filled(channels, {0.1f, -0.2f}));
    constant(name + ".variance", filled(channels, {1, 0.5f, 2}));
    node(op, name, {x, name + ".w"}, {name + ".c"}, conv_attrs);
    node("BatchNormalization", name + ".bn",
         {name + ".c", name + ".scale", name + ".offset", name + ".mean", name + ".variance"}, {y});
    return *this;
  }
};

/// Two outputs: scores, handed on by a node that does nothing in integers, and an image on a grid.
graph::Graph network(const char *last_op = "Identity") {
  const std::vector<std::int64_t> pads{1, 1, 1, 1}, two{2, 2};
  const Attrs padded = attrs({{"pads", pads}}), depthwise = attrs({{"pads", pads}, {"group", std::int64_t{8}}});
  const Attrs pool = attrs({{"kernel_shape", two}, {"strides", two}});
  Layers g;
  g.input("x", {4, 3, 8, 8})
      .constant("zero", filled({}, {0}))
      .constant("six", filled({}, {6}))
      .constant("more", filled({4, 2, 4, 4}, {0.5f, -2, 3}))
      .constant("third.w", weights({8, 8, 1, 1}, 3))
      .constant("third.b", weights({8}, 4))
      .constant("shared.w", weights({18, 18, 1, 1}, 5))
      .constant("last.w", weights({5, 18}, 6))
      .constant("last.b", weights({5}, 7));
  g.block("first", "x", "a", {8, 3, 3, 3}, padded).node("HardSwish", "hardswish", {"a"}, {"b"});
  g.block("second", "b", "c", {8, 1, 3, 3}, depthwise).node("Clip", "relu6", {"c", "zero", "six"}, {"d"});
  g.node("MaxPool", "maxpool", {"d"}, {"e"}, pool)
      .node("Conv", "third", {"e", "third.w", "third.b"}, {"f"})
      .node("Add", "add", {"f", "e"}, {"h"})
      .node("Relu", "relu", {"h"}, {"image"})
      .node("Sigmoid", "sigmoid", {"e"}, {"i"})
      .node("Concat", "concat", {"image", "i", "more"}, {"j"}, attrs({{"axis", std::int64_t{1}}}))
      .node("Conv", "fourth", {"j", "shared.w"}, {"k"})
      .node("Relu", "relu4", {"k"}, {"l"})
      .node("Conv", "fifth", {"l", "shared.w"}, {"m"})
      .node("AveragePool", "averagepool", {"m"}, {"n"}, pool)
      .node("GlobalAveragePool", "mean", {"n"}, {"o"})
      .node("Flatten", "flatten", {"o"}, {"p"})
      .node("Gemm", "last", {"p", "last.w", "last.b"}, {"logits"}, attrs({{"transB", std::int64_t{1}}}));
  const bool drops = std::string_view(last_op) == "Dropout";
  std::vector<std::string> inputs{"logits"};
  if (drops) inputs.push_back("ratio");
  g.constant("ratio", filled({}, {0})).node(last_op, "end", inputs, {"scores"});
  return g.build({"scores", "image"});
}

/// Transposed convolutions with and without groups, normalizations and biases; the outputs of network().
graph::Graph upsampling() {
  const std::vector<std::int64_t> two{2, 2}, pads{1, 1, 1, 1};
  const auto grouped = [&](std::int64_t groups) {
    return attrs(
        {{"strides", two}, {"pads", pads}, {"output_padding", std::vector<std::int64_t>{1, 0}}, {"group", groups}});
  };
  Layers g;
  g.input("x", {4, 3, 8, 8}).constant("down.w", weights({6, 3, 4, 4}, 2)).constant("up.b", weights({12}, 3));
  g.constant("up.w", weights({12, 1, 3, 3}, 4)).constant("last.w", weights({5, 12}, 5));
  g.constant("pic.w", weights({8, 12, 1, 1}, 6));
  g.node("Conv", "down", {"x", "down.w"}, {"a"}, attrs({{"strides", std::vector<std::int64_t>{3, 3}}}));
  g.block("first", "a", "b", {6, 5, 3, 3}, grouped(1), "ConvTranspose").node("Relu", "relu", {"b"}, {"c"});
  g.block("second", "c", "d", {5, 3, 2, 2}, attrs({}), "ConvTranspose").constant("mix.w", weights({12, 3, 1, 1}, 7));
  g.node("Conv", "mix", {"d", "mix.w"}, {"e"});
  g.block("third", "e", "f", {12, 4, 1, 2}, attrs({{"group", std::int64_t{3}}}), "ConvTranspose");
  g.node("Relu", "relu3", {"f"}, {"h"}).node("ConvTranspose", "fourth", {"h", "up.w", "up.b"}, {"i"}, grouped(12));
  g.node("GlobalAveragePool", "mean", {"i"}, {"j"}).node("Flatten", "flatten", {"j"}, {"k"});
  g.node("Gemm", "last", {"k", "last.w"}, {"logits"}, attrs({{"transB", std::int64_t{1}}}));
  g.node("Conv", "narrow", {"i", "pic.w"}, {"l"});
  g.node("MaxPool", "pool", {"l"}, {"m"}, attrs({{"kernel_shape", std::vector<std::int64_t>{4, 3}}, {"strides", two}}));
  g.node("Relu", "relu5", {"m"}, {"image"}).node("Identity", "end", {"logits"}, {"scores"});
  return g.build({"scores", "image"});
}

void train_some(Trainer &trainer) {
  const Tensor scores = varied({4, 5}, 8), image = varied({4, 8, 4, 4}, 9);
  for (std::int64_t i = 0; i < 8; ++i) {
    const Tensor x = varied({4, 3, 8, 8}, 20 + i);
    const Tensor *inputs[] = {&x}, *targets[] = {&scores, &image};
    trainer.backward(inputs, targets);
    trainer.update();
  }
}

/// A value half way between two integers of a grid may become either, as sums of floats and of integers are rounded
/// differently. Few do, and none is further off than a step.
void expect_near(const std::string &what, const Tensor &got, const Tensor &want, float step) {
  std::int64_t apart = 0;
  for (std::int64_t i = 0; i < want.count(); ++i) {
    const float difference = std::fabs(got.as<const float>()[i] - want.as<const float>()[i]);
    if (!(difference < 1.001f * step))
      fail_test(what, "[", i, "] is ", got.as<const float>()[i], ", in integers ", want.as<const float>()[i],
                ", and a step ", step);
    apart += difference > 0.01f * step;
  }
  if (apart * 50 > want.count()) fail_test(what, ": ", apart, " of ", want.count(), " elements differ");
}

/// The step of its grid; for a float output that of the 8-bit grid that it would have.
float step_of(const graph::Value &value, const Tensor &t) {
  if (value.quantizer) return static_cast<float>(value.quantizer->scale());
  const auto values = float_values(t, "t");
  const auto [lo, hi] = std::minmax_element(values.begin(), values.end());
  return (*hi - *lo) / 255;
}

/// A step of training forward, with what the model has learned: normalizations and grids stay.
std::vector<Tensor> floats_on_grids(const quant::PreparedModel &trained, const Tensor &x) {
  Network network(trained.training->graph, Quantization(trained));
  network.switches.freeze_bn = true;
  network.switches.observers = false;
  for (ActivationGrid &grid : network.quantization->activations)
    grid.begin_with(*trained.training->grids.at(grid.name()));
  const ops::TensorType type{x.dtype(), x.shape()};
  Program program(network, std::span(&type, 1));
  const Tensor *inputs[] = {&x};
  program.forward(inputs);
  std::vector<Tensor> outputs;
  for (const Tensor &t : program.outputs()) outputs.push_back(t.clone());
  return outputs;
}

void expect_agreement(const std::string &what, const quant::Config &config, const graph::Graph &g = network()) {
  Trainer trainer(quant::prepare(g, config, QTN_QAT), attrs({{"loss", "mse"}, {"lr", 0.005}}));
  train_some(trainer);
  const Tensor x = varied({4, 3, 8, 8}, 50);
  const Tensor *inputs[] = {&x};
  const std::vector<Tensor> trained = floats_on_grids(*trainer.prepared(), x), evaluated = trainer.evaluate(inputs);
  const graph::Graph converted = quant::convert(*trainer.prepared(), nullptr);
  const std::vector<Tensor> want = graph::evaluate(converted, std::span(&x, 1));
  const std::vector<Tensor> native = runtime::Session(converted, {}).run(inputs);
  for (std::size_t i = 0; i < want.size(); ++i) {
    const graph::Value &value = converted.value(converted.outputs[i]);
    if (value.quantizer ? !same_bits(native[i], want[i]) : !equal_but_for_sums(native[i], want[i]))
      fail_test(what, ": engines differ in ", value.name);
    if (!same_bits(native[i], evaluated[i])) fail_test(what, ": the trainer evaluates another ", value.name);
    expect_near(cat(what, ": ", value.name), trained[i], want[i], step_of(value, want[i]));
  }
}

constexpr const char *kRecipes[] = {"onnx", "fbgemm", "x86", "qnnpack", "onednn", "nvidia", "tflite"};

void of_every_recipe(void **) {
  for (const char *recipe : kRecipes) expect_agreement(recipe, quant::Config(recipe));
}

void of_few_bits(void **) {
  for (const char *recipe : kRecipes) {
    quant::Config config(recipe);
    const Attrs bits = attrs({{"weight_bits", std::int64_t{4}}, {"activation_bits", std::int64_t{4}}});
    config.set("*", &bits);
    expect_agreement(cat(recipe, " with 4 bits"), config);
  }
}

void of_transposed_convolutions(void **) {
  for (const char *recipe : kRecipes)
    for (const std::int64_t bits : {8, 4}) {
      quant::Config config(recipe);
      const Attrs settings = attrs({{"weight_bits", bits}});
      config.set("*", &settings);
      expect_agreement(cat("transposed, ", recipe, ", bits ", bits), config, upsampling());
    }
  for (const char *learning : {"lsq", "amax"}) {
    quant::Config config(learning == std::string_view("amax") ? "qnnpack" : "onnx");
    const Attrs settings = attrs({{"weight_learning", learning}});
    config.set("*", &settings);
    expect_agreement(cat("transposed, learned by ", learning), config, upsampling());
  }
}

void of_learned_grids(void **) {
  struct Case {
    const char *recipe, *activations, *weights;
  };
  for (const Case &c : {Case{"onnx", "lsq", "lsq"}, Case{"onnx", "lsq+", "none"}, Case{"tflite", "lsq+", "lsq"},
                        Case{"onnx", "pact", "lsq"}, Case{"qnnpack", "pact", "amax"}, Case{"qnnpack", "none", "lsq"},
                        Case{"nvidia", "amax", "lsq"}, Case{"nvidia", "lsq", "none"}})
    for (const std::int64_t bits : {8, 4}) {
      quant::Config config(c.recipe);
      const Attrs learning = attrs({{"activation_learning", c.activations},
                                    {"weight_learning", c.weights},
                                    {"activation_bits", bits},
                                    {"weight_bits", bits}});
      config.set("*", &learning);
      expect_agreement(cat(c.recipe, ", activations ", c.activations, ", weights ", c.weights, ", bits ", bits),
                       config);
    }
}

void around_nodes_in_float(void **) {
  for (const char *node : {"first", "third", "add", "concat", "fifth", "last"}) {
    quant::Config config("onnx");
    config.set(cat("node:", node), nullptr);
    expect_agreement(cat(node, " in float"), config);
  }
}

/// Grids of what the model ends with, as its last layer writes it and as nodes hand it on.
void of_grids_at_outputs(void **) {
  const Attrs outputs = attrs({{"quantize_outputs", std::int64_t{1}}});
  const auto with_outputs = [&](const char *recipe, const char *learning) {
    quant::Config config(recipe);
    const Attrs learned = attrs({{"activation_learning", learning}});
    config.set("*", &learned);
    config.set("*", &outputs);
    return config;
  };
  for (const char *recipe : kRecipes) expect_agreement(cat(recipe, " to the end"), with_outputs(recipe, "none"));
  for (const char *learning : {"lsq", "lsq+", "pact"})
    expect_agreement(cat(learning, " to the end"), with_outputs("onnx", learning));
  for (const char *end : {"Dropout", "Softmax", "Tanh"})
    expect_agreement(cat(end, " at the end"), with_outputs("onnx", "none"), network(end));
}

/// What only takes another shape is rounded where it has a grid of its own.
void of_grids_by_name(void **) {
  const Attrs four = attrs({{"quantize", std::int64_t{1}}, {"activation_bits", std::int64_t{4}}});
  quant::Config config("onnx");
  config.set("node:flatten", nullptr);
  config.set("node:last", nullptr);
  config.set("tensor:p", &four);
  config.set("tensor:scores", &four);
  expect_agreement("grids among nodes in float", config);
}

}  // namespace
}  // namespace qtn::train

int main() {
  using namespace qtn::train;
  const CMUnitTest tests[] = {
      cmocka_unit_test(of_every_recipe),
      cmocka_unit_test(of_few_bits),
      cmocka_unit_test(of_learned_grids),
      cmocka_unit_test(around_nodes_in_float),
      cmocka_unit_test(of_grids_at_outputs),
      cmocka_unit_test(of_grids_by_name),
      cmocka_unit_test(of_transposed_convolutions),
  };
  return cmocka_run_group_tests_name("agreement", tests, nullptr, nullptr);
}
