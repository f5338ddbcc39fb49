// SPDX-License-Identifier: Apache-2.0
// Calibration and conversion: ONNX Runtime's scales and integers, failures that leave no trace.
#include <cmath>

#include "golden_network.hpp"
#include "graph/evaluate.hpp"
#include "graph/integer.hpp"
#include "quant/calibrate.hpp"
#include "runtime/session.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

/// All grids and constants of a network. The last product writes float here.
void expect_grids_of_onnxruntime(const char *path) {
  const auto file = golden(cat("quant/", path));
  const graph::Graph g = convert(golden_network(file, Config("onnx")), nullptr);
  for (const auto &[name, want] : file.at("activations").items()) {
    if (name == "y_QuantizeLinear_Input") continue;
    const QuantizerPtr &q = value_named(g, name).quantizer;
    if (!q) fail_test(name, " is not quantized");
    expect_equal(name + " scale", q->scales(), numbers(want.at("scale")));
    expect_equal(name + " zero point", as_doubles(q->zero_points()), numbers(want.at("zero_point")));
  }
  for (const auto &[name, want] : file.at("integers").items()) {
    const Tensor &q = value_named(g, name + "_quantized").constant;
    assert_int_equal(q.dtype(), name.ends_with("weight") ? QTN_INT8 : QTN_INT32);
    expect_equal(name + " scale", q.quantizer()->scales(), numbers(want.at("scale")));
    expect_equal(name, as_doubles(int_values(q, "q")), numbers(want.at("q")));
  }
  for (const graph::Node &node : g.nodes) assert_true(graph::integer_form(g, node) != graph::IntegerForm::none);
}

void equals_onnxruntime(void **) { expect_grids_of_onnxruntime("ptq.json"); }

/// What is pooled is also read by a convolution, and keeps the finer grid that this has alone.
void concat_equals_onnxruntime(void **) { expect_grids_of_onnxruntime("ptq_concat.json"); }

/// What the integers of each recipe cost: what its source's grids cost in NumPy, neither more nor less.
void recipes_cost_what_they_do(void **) {
  const auto file = golden("quant/recipes.json");
  for (const auto &c : file.at("cases")) {
    const std::string recipe = c.at("recipe");
    Config config(recipe);
    const Attrs settings = settings_of(c.at("settings"));
    config.set("*", &settings);
    const PreparedModel p = golden_network(file, config);
    const graph::Graph converted = convert(p, nullptr);
    double signal = 0, noise = 0;
    for (const auto &sample : file.at("samples")) {
      const Tensor x = float_tensor(sample);
      const std::vector<float> want = float_values(graph::evaluate(p.graph, std::span(&x, 1))[0], "y");
      const std::vector<float> got = float_values(graph::evaluate(converted, std::span(&x, 1))[0], "y");
      for (std::size_t i = 0; i < want.size(); ++i) {
        signal += std::pow(want[i], 2.0);
        noise += std::pow(got[i] - want[i], 2.0);
      }
    }
    const double db = 10 * std::log10(signal / noise), want_db = c.at("decibels").get<double>();
    if (!(std::fabs(db - want_db) <= 0.01)) fail_test(recipe, ": ", db, " dB, ", want_db, " are expected");
  }
}

/// One weight a channel, whatever a recipe does to weights.
void a_norm_alone_is_exact(void **) {
  const std::vector<float> scales{1.5f, -0.003f, 0.7f, 4}, variances{1, 2, 0.5f, 3};
  const auto four = [](const std::vector<float> &v) { return Tensor::from<float>(QTN_FLOAT32, {4}, v); };
  const graph::Graph g = GraphBuilder()
                             .input("x", {-1, 4, 3, 3})
                             .constant("scale", four(scales))
                             .constant("offset", four({0, 1, -1, 2}))
                             .constant("mean", four({1, 0, 0.5f, -1}))
                             .constant("variance", four(variances))
                             .node("BatchNormalization", "norm", {"x", "scale", "offset", "mean", "variance"}, {"n"})
                             .node("Relu", "relu", {"n"}, {"r"})
                             .conv("b", "r", "y", 4, 4)
                             .build({"y"});
  for (const char *recipe : {"onnx", "fbgemm", "x86", "qnnpack", "onednn", "nvidia", "tflite"}) {
    PreparedModel p = prepare(g, Config(recipe));
    calibrate_on(p, GraphBuilder::ramp({1, 4, 3, 3}));
    const graph::Graph converted = convert(p, nullptr);
    const auto weights = float_values(dequantize(value_named(converted, "scale_quantized").constant), "weights");
    for (std::size_t c = 0; c < 4; ++c) {
      const double gain = static_cast<double>(scales[c]) / std::sqrt(static_cast<double>(variances[c]) + 1e-5);
      if (!(std::fabs(static_cast<double>(weights[c]) - gain) <= 1e-6 * std::fabs(gain)))
        fail_test(recipe, ": channel ", c, " is multiplied by ", weights[c], ", not ", gain);
    }
  }
}

graph::Graph two_convs() {
  return GraphBuilder().input("x", {-1, 4, 3, 3}).conv("a", "x", "u", 4, 4).conv("b", "u", "y", 4, 4).build({"y"});
}

void convert_needs_data(void **) {
  PreparedModel p = prepare(two_convs(), Config("onnx"));
  expect_error(QTN_ESTATE, "convert: the model has not been calibrated", [&] { convert(p, nullptr); });
  const Attrs unknown = attrs({{"format", "qdq"}});
  expect_error(QTN_EINVAL, "format", [&] { convert(p, &unknown); });
  calibrate_on(p, Tensor(QTN_FLOAT32, {0, 4, 3, 3}));
  expect_error(QTN_ESTATE, "no data to tensor \"x\"", [&] { convert(p, nullptr); });
}

std::vector<std::vector<std::byte>> state(const PreparedModel &p) {
  std::vector<std::vector<std::byte>> all;
  for (const auto &observer : p.observers) all.push_back(observer->save());
  return all;
}

void bad_samples_leave_no_trace(void **) {
  for (const char *observer : {"minmax", "moving_average", "mse", "histogram"}) {
    Config config("onnx");
    const Attrs a = attrs({{"observer", observer}});
    config.set("*", &a);
    PreparedModel p = prepare(two_convs(), config);
    for (int i = 0; i < 3; ++i) calibrate_on(p, GraphBuilder::ramp({2, 4, 3, 3}));
    const auto before = state(p);
    Tensor bad = GraphBuilder::ramp({1, 4, 3, 3});
    bad.as<float>()[17] = std::numeric_limits<float>::quiet_NaN();
    expect_error(QTN_EINVAL, "calibrate: input \"x\" has nan at index 17 of sample 3", [&] { calibrate_on(p, bad); });
    for (std::int64_t i = 0; i < bad.count(); ++i) bad.as<float>()[i] = i % 9 == 4 ? 3e38f : 0.0f;
    expect_error(QTN_EINVAL, "of sample 3", [&] { calibrate_on(p, bad); });
    expect_error(QTN_ESHAPE, "\"x\"", [&] { calibrate_on(p, GraphBuilder::ramp({1, 3, 3, 3})); });
    expect_error(QTN_EDTYPE, "\"x\"", [&] { calibrate_on(p, Tensor(QTN_INT64, {1, 4, 3, 3})); });
    expect_error(QTN_EINVAL, "takes 1 inputs, not 0", [&] { calibrate(p, {}); });
    assert_true(state(p) == before);
    assert_int_equal(p.samples, 3);
  }
}

void overflow_inside_names_the_tensor(void **) {
  GraphBuilder builder;
  builder.input("x", {1, 1, 1, 1});
  builder.constant("w", floats({1, 1, 1, 1}, {1e30f}));
  builder.node("Conv", "a", {"x", "w"}, {"u"}).conv("b", "u", "y", 1, 1);
  PreparedModel p = prepare(builder.build({"y"}), Config("onnx"));
  calibrate_on(p, floats({1, 1, 1, 1}, {1}));
  const auto before = state(p);
  expect_error(QTN_EINVAL, "calibrate: tensor \"u\" has inf at index 0 of sample 1", [&] {
    calibrate_on(p, floats({1, 1, 1, 1}, {1e10f}));
  });
  assert_true(state(p) == before);
}

void shared_weights(void **) {
  GraphBuilder builder;
  builder.input("x", {1, 4, 3, 3})
      .constant("w", GraphBuilder::ramp({4, 4, 1, 1}))
      .constant("b", GraphBuilder::ramp({4}));
  builder.node("Conv", "first", {"x", "w", "b"}, {"u"}).node("Conv", "second", {"u", "w", "b"}, {"v"});
  builder.node("Conv", "third", {"v", "w", "b"}, {"y"});
  Config config("onnx");
  const Attrs per_tensor = attrs({{"weight_scheme", "per_tensor_symmetric"}});
  config.set("node:third", &per_tensor);
  PreparedModel p = prepare(builder.build({"y"}), config);
  calibrate_on(p, GraphBuilder::ramp({1, 4, 3, 3}));
  const graph::Graph g = convert(p, nullptr);
  const auto &first = node_named(g, "first"), &second = node_named(g, "second"), &third = node_named(g, "third");
  assert_int_equal(first.inputs[1], second.inputs[1]);
  assert_int_not_equal(first.inputs[1], third.inputs[1]);
  assert_int_not_equal(first.inputs[2], second.inputs[2]);
  assert_int_equal(g.value(third.inputs[1]).quantizer->count(), 1);
  assert_int_equal(g.value(third.inputs[2]).quantizer->count(), 1);
  for (const graph::Value &value : g.values)
    if (value.is_constant()) assert_non_null(value.quantizer.get());
}

/// x over [0, of_x] is read by a convolution and joined with z over [0, of_z].
graph::Graph joined(float of_x, float of_z, std::vector<Tensor> &inputs) {
  GraphBuilder builder;
  builder.input("x", {1, 2, 2, 2}).input("z", {1, 2, 2, 2}).conv("a", "x", "y", 2, 2);
  builder.node("Concat", "concat", {"x", "z"}, {"u"}, attrs({{"axis", std::int64_t{1}}})).conv("b", "u", "v", 4, 2);
  PreparedModel p = prepare(builder.build({"y", "v"}), Config("onnx"));
  inputs = {floats({1, 2, 2, 2}, {of_x, 0, 1, 2, 0.3f, 0.5f, 0.7f, 1.1f}),
            floats({1, 2, 2, 2}, {0, of_z, 3, 0.1f, 0.9f, 1.3f, 2.5f, 1})};
  const Tensor *pointers[] = {&inputs[0], &inputs[1]};
  calibrate(p, pointers);
  return convert(p, nullptr);
}

/// From a factor of sqrt(2) between the steps on, both are kept.
void grids_that_are_nearly_alike_become_one(void **) {
  struct Case {
    float of_x, of_z, scale_of_x;
  };
  for (const Case &c : {Case{4, 5.6f, 5.6f}, Case{4, 5.7f, 4}, Case{4, 400, 4}, Case{4, 3, 4}}) {
    std::vector<Tensor> inputs;
    const graph::Graph g = joined(c.of_x, c.of_z, inputs);
    const float all = std::max(c.of_x, c.of_z);
    for (const auto &[name, range] : {std::pair("x", c.scale_of_x), {"z", all}, {"u", all}}) {
      const auto want = static_cast<float>(static_cast<double>(range) / 255);
      if (value_named(g, name).quantizer->scale() != want)
        fail_test("[0, ", c.of_x, "], [0, ", c.of_z, "]: ", name, " has scale ",
                  value_named(g, name).quantizer->scale(), ", not ", want);
    }
    assert_true(graph::integer_form(g, node_named(g, "concat")) == graph::IntegerForm::move);
    const Tensor *pointers[] = {&inputs[0], &inputs[1]};
    const std::vector<Tensor> reference = graph::evaluate(g, inputs), native = runtime::Session(g, {}).run(pointers);
    for (std::size_t i = 0; i < reference.size(); ++i)
      assert_true(float_values(reference[i], "reference") == float_values(native[i], "native"));
  }
}

/// Only two Concats read x, so no node needs a grid finer than those of their results.
void what_only_concats_read(void **) {
  struct Case {
    float of_v, of_w, first;
  };
  for (const Case &c : {Case{10, 12, 12}, Case{10, 40, 10}}) {
    const Attrs channels = attrs({{"axis", std::int64_t{1}}});
    GraphBuilder builder;
    for (const char *name : {"x", "v", "w"}) builder.input(name, {1, 2, 2, 2});
    builder.node("Concat", "first", {"x", "v"}, {"f"}, channels).node("Concat", "second", {"x", "w"}, {"s"}, channels);
    PreparedModel p =
        prepare(builder.conv("a", "f", "y", 4, 2).conv("b", "s", "z", 4, 2).build({"y", "z"}), Config("onnx"));
    const Tensor x = floats({1, 2, 2, 2}, {1, 0, 0, 0, 0, 0, 0, 0}),
                 v = floats({1, 2, 2, 2}, {c.of_v, 0, 0, 0, 0, 0, 0, 0}),
                 w = floats({1, 2, 2, 2}, {c.of_w, 0, 0, 0, 0, 0, 0, 0});
    const Tensor *inputs[] = {&x, &v, &w};
    calibrate(p, inputs);
    const graph::Graph g = convert(p, nullptr);
    for (const auto &[name, range] : {std::pair("x", c.first), {"f", c.first}, {"s", c.of_w}})
      if (const float scale = value_named(g, name).quantizer->scale();
          scale != static_cast<float>(static_cast<double>(range) / 255))
        fail_test("[0, ", c.of_v, "], [0, ", c.of_w, "]: ", name, " has scale ", scale, ", not that of [0, ", range,
                  "]");
  }
}

void tied_values_share_the_widest_range(void **) {
  GraphBuilder builder;
  builder.input("x", {1, 2, 2, 2}).input("z", {1, 2, 2, 2}).constant("k", floats({1, 1, 2, 2}, {9, 0, 0, 0}));
  builder.node("Concat", "concat", {"x", "z", "k"}, {"u"}, attrs({{"axis", std::int64_t{1}}}))
      .conv("a", "u", "y", 5, 2);
  PreparedModel p = prepare(builder.build({"y"}), Config("onnx"));
  const Tensor x = floats({1, 2, 2, 2}, {-3, 0, 0, 0, 0, 0, 0, 0}), z = floats({1, 2, 2, 2}, {4, 0, 0, 0, 0, 0, 0, 0});
  const Tensor *inputs[] = {&x, &z};
  calibrate(p, inputs);
  const graph::Graph g = convert(p, nullptr);
  const QuantizerPtr grid = value_named(g, "u").quantizer;
  assert_true(grid->scale() == static_cast<float>(12.0 / 255));
  for (const graph::ValueId v : node_named(g, "concat").inputs) assert_true(*g.value(v).quantizer == *grid);
  assert_true(graph::integer_form(g, node_named(g, "concat")) == graph::IntegerForm::move);
}

/// A bias that would be at the limit of int32 leaves room for what is added to it.
void products_fit_beside_a_bias(void **) {
  const Tensor x = floats({1, 64}, std::vector<float>(64, 1.0f)), w = floats({64, 3}, std::vector<float>(192, 1.0f));
  GraphBuilder builder;
  builder.input("x", {1, 64}).constant("w", w).constant("b", floats({3}, {7e4f, -6.6e4f, 0.5f}));
  PreparedModel p = prepare(builder.node("Gemm", "fc", {"x", "w", "b"}, {"y"}).build({"y"}), Config("onnx"));
  calibrate_on(p, x);
  const graph::Graph g = convert(p, nullptr);
  const std::vector<std::int64_t> weights = int_values(value_named(g, "w_quantized").constant, "w");
  const std::vector<std::int64_t> biases = int_values(value_named(g, "b_quantized").constant, "b");
  for (std::size_t c = 0; c < biases.size(); ++c) {
    std::int64_t sum = std::abs(biases[c]);
    for (std::size_t i = c; i < weights.size(); i += biases.size()) sum += 255 * std::abs(weights[i]);
    if (sum > INT32_MAX) fail_test("channel ", c, ": sums up to ", sum);
  }
}

/// Scales grow by the margin, and zero stays where it is; weights and fixed grids are as they were.
void margins(void **) {
  GraphBuilder b;
  b.input("x", {1, 2, 3, 3})
      .conv("first", "x", "u", 2, 4)
      .node("Relu", "relu", {"u"}, {"v"})
      .conv("last", "v", "y", 4, 3);
  const graph::Graph real = b.build({"y"});
  const auto converted = [&](double of_all, double of_v, const char *recipe) {
    Config config(recipe);
    const Attrs all = attrs({{"margin", of_all}, {"quantize_outputs", std::int64_t{1}}}),
                one = attrs({{"margin", of_v}});
    config.set("*", &all);
    config.set("tensor:v", &one);
    PreparedModel p = prepare(real, config);
    calibrate_on(p, GraphBuilder::ramp({1, 2, 3, 3}));
    return convert(p, nullptr);
  };
  for (const char *recipe : {"onnx", "nvidia", "tflite"}) {
    const graph::Graph plain = converted(0, 0, recipe), wide = converted(0.25, 0.5, recipe);
    const auto grown = [&](const char *name) {
      const Quantizer &a = *value_named(plain, name).quantizer, &q = *value_named(wide, name).quantizer;
      assert_int_equal(q.zero_point(), a.zero_point());
      return q.scale() / a.scale();
    };
    assert_float_equal(grown("x"), 1.25, 1e-6);
    assert_float_equal(grown("y"), 1.25, 1e-6);
    assert_float_equal(grown("v"), 1.5, 1e-6);
    const auto weights = [&](const graph::Graph &g) {
      return value_named(g, g.value(node_named(g, "first").inputs[1]).name.c_str()).constant.quantizer()->scales();
    };
    assert_true(weights(plain) == weights(wide));
  }
  Config config("onnx");
  const Attrs all = attrs({{"margin", 0.25}}),
              given = attrs({{"observer", "fixed"}, {"scale", 0.5}, {"zero_point", std::int64_t{3}}});
  config.set("*", &all);
  config.set("tensor:v", &given);
  PreparedModel p = prepare(real, config);
  calibrate_on(p, GraphBuilder::ramp({1, 2, 3, 3}));
  assert_true(value_named(convert(p, nullptr), "v").quantizer->scale() == 0.5);
}

void int8_activations(void **) {
  Config config("onnx");
  const Attrs a = attrs({{"activation_dtype", "int8"}, {"activation_scheme", "per_tensor_symmetric"}});
  config.set("*", &a);
  PreparedModel p = prepare(two_convs(), config);
  calibrate_on(p, GraphBuilder::ramp({3, 4, 3, 3}));
  const graph::Graph g = convert(p, nullptr);
  const QuantizerPtr &q = value_named(g, "x").quantizer;
  assert_int_equal(q->dtype(), QTN_INT8);
  assert_true(q->zero_point() == 0 && q->scale() == static_cast<float>(2.0 / 254));
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {
      cmocka_unit_test(equals_onnxruntime),
      cmocka_unit_test(margins),
      cmocka_unit_test(concat_equals_onnxruntime),
      cmocka_unit_test(a_norm_alone_is_exact),
      cmocka_unit_test(recipes_cost_what_they_do),
      cmocka_unit_test(convert_needs_data),
      cmocka_unit_test(bad_samples_leave_no_trace),
      cmocka_unit_test(overflow_inside_names_the_tensor),
      cmocka_unit_test(shared_weights),
      cmocka_unit_test(grids_that_are_nearly_alike_become_one),
      cmocka_unit_test(what_only_concats_read),
      cmocka_unit_test(tied_values_share_the_widest_range),
      cmocka_unit_test(products_fit_beside_a_bias),
      cmocka_unit_test(int8_activations),
  };
  return cmocka_run_group_tests_name("ptq", tests, nullptr, nullptr);
}
