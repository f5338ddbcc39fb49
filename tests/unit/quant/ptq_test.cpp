// SPDX-License-Identifier: Apache-2.0
// Calibration and conversion: ONNX Runtime's scales and integers, failures that leave no trace.
#include <cmath>

#include "golden_network.hpp"
#include "graph/evaluate.hpp"
#include "graph/integer.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

void equals_onnxruntime(void **) {
  const auto file = golden("ptq.json");
  const graph::Graph g = convert(golden_network(file, Config("onnx")), nullptr);
  for (const auto &[name, want] : file.at("activations").items()) {
    if (name == "y_QuantizeLinear_Input") continue;  // the last product writes float here
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

void converted_graph_is_close(void **) {
  const auto file = golden("ptq.json");
  for (const char *recipe : {"onnx", "fbgemm", "x86", "qnnpack", "onednn", "nvidia", "tflite"}) {
    Prepared p = golden_network(file, Config("onnx"));
    p = prepare(p.graph, Config(recipe));
    const Tensor x = float_tensor(file.at("samples").at(0));
    for (const auto &sample : file.at("samples")) calibrate_on(p, float_tensor(sample));
    const std::vector<float> want = float_values(graph::evaluate(p.graph, std::span(&x, 1))[0], "y");
    const std::vector<float> got = float_values(graph::evaluate(convert(p, nullptr), std::span(&x, 1))[0], "y");
    for (std::size_t i = 0; i < want.size(); ++i)
      if (std::fabs(got[i] - want[i]) > 0.2f) fail_test(recipe, ": y[", i, "] is ", got[i], ", in float ", want[i]);
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
    Prepared p = prepare(g, Config(recipe));
    calibrate_on(p, GraphBuilder::ramp({1, 4, 3, 3}));
    const graph::Graph converted = convert(p, nullptr);
    const auto weights =
        float_values(dequantize(value_named(converted, "norm_weight_folded_quantized").constant), "weights");
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
  Prepared p = prepare(two_convs(), Config("onnx"));
  expect_error(QTN_ESTATE, "convert: the model has not been calibrated", [&] { convert(p, nullptr); });
  const Attrs unknown = attrs({{"format", "qdq"}});
  expect_error(QTN_EINVAL, "format", [&] { convert(p, &unknown); });
  calibrate_on(p, Tensor(QTN_FLOAT32, {0, 4, 3, 3}));
  expect_error(QTN_ESTATE, "no data to tensor \"x\"", [&] { convert(p, nullptr); });
}

std::vector<std::vector<std::byte>> state(const Prepared &p) {
  std::vector<std::vector<std::byte>> all;
  for (const auto &observer : p.observers) all.push_back(observer->save());
  return all;
}

void bad_samples_leave_no_trace(void **) {
  for (const char *observer : {"minmax", "moving_average", "mse", "histogram"}) {
    Config config("onnx");
    const Attrs a = attrs({{"observer", observer}});
    config.set("*", &a);
    Prepared p = prepare(two_convs(), config);
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
  Prepared p = prepare(builder.build({"y"}), Config("onnx"));
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
  Prepared p = prepare(builder.build({"y"}), config);
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

void tied_values_share_the_widest_range(void **) {
  GraphBuilder builder;
  builder.input("x", {1, 2, 2, 2}).input("z", {1, 2, 2, 2}).constant("k", floats({1, 1, 2, 2}, {9, 0, 0, 0}));
  builder.node("Concat", "concat", {"x", "z", "k"}, {"u"}, attrs({{"axis", std::int64_t{1}}}))
      .conv("a", "u", "y", 5, 2);
  Prepared p = prepare(builder.build({"y"}), Config("onnx"));
  const Tensor x = floats({1, 2, 2, 2}, {-3, 0, 0, 0, 0, 0, 0, 0}), z = floats({1, 2, 2, 2}, {4, 0, 0, 0, 0, 0, 0, 0});
  const Tensor *inputs[] = {&x, &z};
  calibrate(p, inputs);
  const graph::Graph g = convert(p, nullptr);
  const QuantizerPtr grid = value_named(g, "u").quantizer;
  assert_true(grid->scale() == static_cast<float>(12.0 / 255));
  for (const graph::ValueId v : node_named(g, "concat").inputs) assert_true(*g.value(v).quantizer == *grid);
  assert_true(graph::integer_form(g, node_named(g, "concat")) == graph::IntegerForm::move);
}

void int8_activations(void **) {
  Config config("onnx");
  const Attrs a = attrs({{"activation_dtype", "int8"}, {"activation_scheme", "per_tensor_symmetric"}});
  config.set("*", &a);
  Prepared p = prepare(two_convs(), config);
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
      cmocka_unit_test(a_norm_alone_is_exact),
      cmocka_unit_test(converted_graph_is_close),
      cmocka_unit_test(convert_needs_data),
      cmocka_unit_test(bad_samples_leave_no_trace),
      cmocka_unit_test(overflow_inside_names_the_tensor),
      cmocka_unit_test(shared_weights),
      cmocka_unit_test(tied_values_share_the_widest_range),
      cmocka_unit_test(int8_activations),
  };
  return cmocka_run_group_tests_name("ptq", tests, nullptr, nullptr);
}
