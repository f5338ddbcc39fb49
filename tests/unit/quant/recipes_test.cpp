// SPDX-License-Identifier: Apache-2.0
// Recipes beside the systems whose defaults they are, and grids of other widths.
#include <algorithm>
#include <cmath>

#include "../sums.hpp"
#include "golden_network.hpp"
#include "graph/evaluate.hpp"
#include "graph/integer.hpp"
#include "graph/passes/passes.hpp"
#include "graph/pipelines.hpp"
#include "onnx/onnx.hpp"
#include "runtime/session.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

Config config_of(const std::string &recipe, const Attrs &settings) {
  Config config(recipe);
  config.set("*", &settings);
  return config;
}

void recipes_equal_their_sources(void **) {
  const auto file = golden("quant/recipes.json");
  for (const auto &c : file.at("cases")) {
    const std::string recipe = c.at("recipe");
    const Config config = config_of(recipe, settings_of(c.at("settings")));
    const graph::Graph g = convert(golden_network(file, config), nullptr);
    for (const auto &[name, want] : c.at("activations").items()) {
      const Quantizer &q = *value_named(g, name).quantizer;
      expect_equal(recipe + " " + name + " scale", q.scales(), numbers(want.at("scale")));
      expect_equal(recipe + " " + name + " zero point", as_doubles(q.zero_points()), numbers(want.at("zero_point")));
    }
    for (const auto &[name, want] : c.at("weights").items()) {
      const Tensor &q = value_named(g, name + "_quantized").constant;
      expect_equal(recipe + " " + name + " scale", q.quantizer()->scales(), numbers(want.at("scale")));
      expect_equal(recipe + " " + name, as_doubles(int_values(q, "q")), numbers(want.at("q")));
    }
  }
  assert_int_equal(file.at("cases").size(), 9);
}

std::vector<float> run(const graph::Graph &g, const Tensor &x) {
  const Tensor *inputs[] = {&x};
  return float_values(runtime::Session(g, {}).run(inputs)[0], "y");
}

/// Both engines give the same numbers, also after the model went through a file, and lose no more than so many dB.
/// `step`: where products of floats end on a grid, the distance between its integers; 0 where they end on no grid. Without
/// it the numbers have the same bits.
void check_engines(const std::string &what, const nlohmann::json &file, const Config &config, double least_sqnr,
                   std::optional<double> step = std::nullopt) {
  const PreparedModel prepared = golden_network(file, config);
  const graph::Graph g = convert(prepared, nullptr);
  const std::string bytes = onnx::serialize(g, {});
  const graph::Graph again = onnx::parse(std::as_bytes(std::span(bytes)), "");
  double signal = 0, noise = 0;
  for (const auto &sample : file.at("samples")) {
    const Tensor x = float_tensor(sample);
    const std::vector<float> real = float_values(graph::evaluate(prepared.graph, std::span(&x, 1))[0], "y");
    const Tensor y = graph::evaluate(g, std::span(&x, 1))[0];
    const Tensor *inputs[] = {&x};
    const Tensor by_kernels = runtime::Session(g, {}).run(inputs)[0];
    const std::vector<float> reference = float_values(y, "y"), native = float_values(by_kernels, "y");
    if (step ? !equal_but_for_sums(by_kernels, y, *step) : native != reference) fail_test(what, ": the engines differ");
    if (run(again, x) != native) fail_test(what, ": the file differs");
    for (std::size_t i = 0; i < real.size(); ++i) {
      signal += std::pow(static_cast<double>(real[i]), 2);
      noise += std::pow(static_cast<double>(reference[i] - real[i]), 2);
    }
  }
  const double sqnr = 10 * std::log10(signal / noise);
  if (!(sqnr >= least_sqnr)) fail_test(what, ": ", sqnr, " dB");
}

/// A bit is 6 dB: of int4 in three layers some 15 remain, of int8 some 40.
void other_widths_run(void **) {
  struct Case {
    const char *what;
    Attrs settings;
    double sqnr;
    std::optional<double> step = std::nullopt;
  };
  const Case cases[] = {
      {"int4 per channel", attrs({{"weight_dtype", "int4"}}), 12},
      {"int4 per tensor", attrs({{"weight_dtype", "int4"}, {"weight_scheme", "per_tensor_symmetric"}}), 12},
      {"int4 per block",
       attrs({{"weight_dtype", "int4"}, {"weight_scheme", "per_block_symmetric"}, {"block_size", std::int64_t{2}}}), 15,
       0},
      {"int8 per block", attrs({{"weight_scheme", "per_block_symmetric"}, {"block_size", std::int64_t{16}}}), 35, 0},
      {"int16", attrs({{"activation_dtype", "int16"}, {"activation_scheme", "per_tensor_symmetric"}}), 35, 1e-3},
  };
  for (const char *name : {"ptq.json", "recipes.json"}) {
    const auto file = golden(cat("quant/", name));
    for (const Case &c : cases)
      check_engines(cat(name, " ", c.what), file, config_of("onnx", c.settings), c.sqnr, c.step);
  }
}

/// What moves integers of 8 bits moves those of 16 too.
void wide_integers_move(void **) {
  const Attrs pool =
      attrs({{"kernel_shape", std::vector<std::int64_t>{2, 2}}, {"strides", std::vector<std::int64_t>{2, 2}}});
  const Attrs swap = attrs({{"perm", std::vector<std::int64_t>{0, 1, 3, 2}}});
  const Attrs nearest = attrs({{"mode", "nearest"}}), channels = attrs({{"axis", std::int64_t{1}}});
  GraphBuilder builder;
  builder.input("x", {1, 4, 4, 4}).conv("a", "x", "u", 4, 4);
  builder.constant("scales", floats({4}, {1, 1, 2, 2}));
  builder.constant("pads", Tensor::from_ints(std::vector<std::int64_t>{0, 0, 1, 0, 0, 0, 0, 1}));
  builder.constant("index", Tensor::from_ints(std::vector<std::int64_t>{1, 0}));
  builder.node("MaxPool", "pool", {"u"}, {"p"}, pool).node("Resize", "resize", {"p", "", "scales"}, {"r"}, nearest);
  builder.node("Max", "max", {"u", "r"}, {"m"}).node("Concat", "concat", {"r", "m"}, {"c"}, channels);
  builder.node("DepthToSpace", "blocks", {"c"}, {"d"}, attrs({{"blocksize", std::int64_t{2}}}));
  builder.node("Pad", "pad", {"d", "pads"}, {"e"}).node("Transpose", "swap", {"e"}, {"t"}, swap);
  builder.node("Gather", "gather", {"t", "index"}, {"g"}, channels).conv("b", "g", "y", 2, 3);
  Config config("onnx");
  const Attrs wide = attrs({{"activation_dtype", "int16"}, {"activation_scheme", "per_tensor_symmetric"}});
  config.set("*", &wide);
  PreparedModel p = prepare(builder.build({"y"}), config);
  const Tensor x = GraphBuilder::ramp({1, 4, 4, 4});
  calibrate_on(p, x);
  const graph::Graph g = convert(p, nullptr);
  for (const char *name : {"x", "u", "p", "r", "m", "c", "d", "e", "t", "g"})
    assert_int_equal(value_named(g, name).quantizer->dtype(), QTN_INT16);
  const std::vector<float> reference = float_values(graph::evaluate(g, std::span(&x, 1))[0], "y");
  assert_true(run(g, x) == reference);
  const std::vector<float> real = float_values(graph::evaluate(p.graph, std::span(&x, 1))[0], "y");
  for (std::size_t i = 0; i < real.size(); ++i) assert_float_equal(reference[i], real[i], 0.02f);
}

void int4_weights_run_in_integers(void **) {
  const auto file = golden("quant/ptq.json");
  graph::Graph g = convert(golden_network(file, config_of("onnx", attrs({{"weight_dtype", "int4"}}))), nullptr);
  graph::run_passes(g, graph::Pipeline::inference);
  for (const graph::Node &node : g.nodes) assert_true(graph::integer_form(g, node) != graph::IntegerForm::none);
}

/// Scales of blocks run along what a product sums over; the bias stays as it is.
void blocks_divide_inputs(void **) {
  const auto file = golden("quant/recipes.json");
  const Config config =
      config_of("onnx", attrs({{"weight_scheme", "per_block_symmetric"}, {"block_size", std::int64_t{4}}}));
  const graph::Graph g = convert(golden_network(file, config), nullptr);
  const QuantizerPtr conv = value_named(g, "conv2.weight_quantized").quantizer,
                     fc = value_named(g, "fc.weight_quantized").quantizer;
  assert_true(conv->axis() == 1 && conv->count() == 4 * 2);
  assert_true(fc->axis() == 1 && fc->count() == 3 * 25);
  assert_int_equal(value_named(g, "fc.bias").constant.dtype(), QTN_FLOAT32);
  // Dequantized when the session is made: no step has the weights of blocks as operands.
  const Tensor x = float_tensor(file.at("samples").at(0));
  const Tensor *inputs[] = {&x};
  assert_true(runtime::Session(g, {}).profile(inputs).find("\"definition\"") == std::string::npos);
}

/// Biases in float cost neither the kernels nor the bits: these take them in the units of their sums.
void float_biases_run_in_integers(void **) {
  for (const char *name : {"ptq.json", "recipes.json"}) {
    const auto file = golden(cat("quant/", name));
    const Config config = config_of("onnx", attrs({{"bias", "float32"}}));
    check_engines(cat(name, " float biases"), file, config, 35);
    const PreparedModel p = golden_network(file, config);
    const graph::Graph g = convert(p, nullptr), integers = convert(golden_network(file, Config("onnx")), nullptr);
    std::size_t biases = 0;
    for (std::size_t n = 0; n < g.nodes.size(); ++n) {
      assert_true(graph::integer_form(g, g.nodes[n]) != graph::IntegerForm::none);
      if (g.nodes[n].inputs.size() < 3) continue;
      const graph::Value &bias = g.value(g.nodes[n].inputs[2]);
      assert_true(bias.constant.dtype() == QTN_FLOAT32 && !bias.quantizer);
      assert_ptr_equal(bias.constant.data(), p.graph.value(p.graph.nodes[n].inputs[2]).constant.data());
      ++biases;
    }
    assert_true(biases >= 2);
    const Tensor x = float_tensor(file.at("samples").at(0));
    assert_true(run(g, x) == run(integers, x));
  }
  assert_true(Config("nvidia").settings_for({"n", ops::find_op("Conv"), {}, {}, {}, {}})->float_bias);
}

/// A range that cuts weights off leaves them on the narrow grid of its numerics.
void cut_weights_stay_narrow(void **) {
  const auto file = golden("quant/recipes.json");
  const Attrs cut = attrs(
      {{"weight_observer", "nvidia_percentile"}, {"weight_scheme", "per_tensor_symmetric"}, {"percentile", 50.0}});
  const graph::Graph g = convert(golden_network(file, config_of("nvidia", cut)), nullptr);
  const std::vector<std::int64_t> q = int_values(value_named(g, "conv1.weight_quantized").constant, "q");
  assert_int_equal(*std::min_element(q.begin(), q.end()), -127);
}

void one_tensor_has_settings_of_its_own(void **) {
  const auto file = golden("quant/recipes.json");
  Config config("onnx");
  const Attrs fixed = attrs({{"observer", "fixed"}, {"scale", 0.125}, {"zero_point", std::int64_t{7}}}),
              wide = attrs({{"activation_dtype", "int16"}, {"activation_scheme", "per_tensor_symmetric"}}),
              node = attrs({{"activation_dtype", "int8"}});
  config.set("tensor:relu1.out", &fixed);
  config.set("tensor:flat.out", &wide);  // one grid with conv2.out
  config.set("node:conv1", &node);
  const PreparedModel p = golden_network(file, config);
  for (std::size_t i = 0; i < p.observers.size(); ++i)
    assert_true((p.observers[i] == nullptr) == (p.placement.groups[i].settings.activation_observer == "fixed"));
  const graph::Graph g = convert(p, nullptr);
  const Quantizer &relu = *value_named(g, "relu1.out").quantizer;
  assert_true(relu.dtype() == QTN_INT8 && relu.scale() == 0.125f && relu.zero_point() == 7);
  assert_int_equal(value_named(g, "conv2.out").quantizer->dtype(), QTN_INT16);
  assert_int_equal(value_named(g, "x").quantizer->dtype(), QTN_INT8);
  check_engines("a width for each tensor", file, config, 20, 1e-3);

  config.set("tensor:conv1.out", &fixed);  // is no more: Relu is part of the convolution
  expect_error(QTN_EINVAL, "\"tensor:conv1.out\"", [&] { golden_network(file, config); });
}

void one_tensor_may_be_observed_where_its_operator_is_not(void **) {
  GraphBuilder builder;
  builder.input("x", {1, 4, 3, 3}).conv("a", "x", "u", 4, 4).node("Sigmoid", "s", {"u"}, {"v"});
  const graph::Graph g = builder.conv("b", "v", "y", 4, 4).build({"y"});
  Config config("tflite");
  assert_non_null(prepare(g, config).placement.groups[2].fixed.get());
  const Attrs minmax = attrs({{"observer", "minmax"}});
  config.set("tensor:v", &minmax);
  assert_null(prepare(g, config).placement.groups[2].fixed.get());
  // Known scales are of 8 bits.
  const Config wide = config_of("tflite", attrs({{"activation_dtype", "int16"}}));
  assert_null(prepare(g, wide).placement.groups[2].fixed.get());
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {cmocka_unit_test(recipes_equal_their_sources),
                              cmocka_unit_test(other_widths_run),
                              cmocka_unit_test(wide_integers_move),
                              cmocka_unit_test(int4_weights_run_in_integers),
                              cmocka_unit_test(blocks_divide_inputs),
                              cmocka_unit_test(float_biases_run_in_integers),
                              cmocka_unit_test(cut_weights_stay_narrow),
                              cmocka_unit_test(one_tensor_has_settings_of_its_own),
                              cmocka_unit_test(one_tensor_may_be_observed_where_its_operator_is_not)};
  return cmocka_run_group_tests_name("recipes", tests, nullptr, nullptr);
}
