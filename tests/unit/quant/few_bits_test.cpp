// SPDX-License-Identifier: Apache-2.0
// Integers of fewer bits than bytes have: "weight_bits", "activation_bits".
#include "golden_network.hpp"
#include "graph/evaluate.hpp"
#include "graph/integer.hpp"
#include "networks.hpp"
#include "onnx/onnx.hpp"
#include "quant/quantize.hpp"
#include "quant/weights.hpp"
#include "runtime/session.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

constexpr const char *kRecipes[] = {"onnx", "fbgemm", "x86", "qnnpack", "onednn", "nvidia", "tflite"};

Config with_bits(const char *recipe, std::int64_t bits) {
  Config config(recipe);
  const Attrs a = attrs({{"weight_bits", bits}, {"activation_bits", bits}});
  config.set("*", &a);
  return config;
}

/// Sums of two layers, whose values are moved beside a constant, and a bounded function.
graph::Graph network() {
  GraphBuilder g;
  g.input("x", {1, 4, 3, 3}).constant("k", floats({1, 1, 3, 3}, {9, -9, 0, 1, 2, 3, 4, 5, 6}));
  g.conv("a", "x", "u", 4, 4).node("Relu", "relu", {"u"}, {"v"}).conv("b", "v", "w", 4, 4);
  g.node("Add", "add", {"v", "w"}, {"s"})
      .node("Concat", "concat", {"s", "k"}, {"t"}, attrs({{"axis", std::int64_t{1}}}))
      .conv("c", "t", "z", 5, 4)
      .node("Sigmoid", "sigmoid", {"z"}, {"p"})
      .conv("d", "p", "y", 4, 2);
  return g.build({"y", "v", "t", "p"});
}

PreparedModel calibrated_network(const Config &config) {
  PreparedModel p = prepare(network(), config);
  calibrate_on(p, GraphBuilder::ramp({1, 4, 3, 3}));
  return p;
}

/// Larger than what calibration has seen.
Tensor loud() {
  Tensor x = GraphBuilder::ramp({1, 4, 3, 3});
  for (std::int64_t i = 0; i < x.count(); ++i) x.as<float>()[i] *= -20;
  return x;
}

/// Values on the grid of `name`, as integers.
std::set<std::int64_t> integers(const graph::Graph &g, const std::string &name, const Tensor &values) {
  const QuantizerPtr grid = value_named(g, name).quantizer;
  std::set<std::int64_t> found;
  for (const float v : float_values(values, name.c_str()))
    found.insert(std::lround(static_cast<double>(v) / grid->scale()) + grid->zero_point());
  return found;
}

void integers_have_so_many_bits(void **) {
  for (const char *recipe : kRecipes)
    for (const std::int64_t bits : {2, 4, 7}) {
      const graph::Graph g = convert(calibrated_network(with_bits(recipe, bits)), nullptr);
      const Tensor x = loud();
      const std::vector<Tensor> y = graph::evaluate(g, std::span(&x, 1));
      const char *names[] = {"", "v", "t", "p"};
      for (std::size_t i = 1; i < 4; ++i) {
        const std::set<std::int64_t> found = integers(g, names[i], y[i]);
        const bool is_signed = value_named(g, names[i]).quantizer->dtype() == QTN_INT8;
        const std::int64_t lo = is_signed ? -(1 << (bits - 1)) : 0, hi = lo + (1 << bits) - 1;
        if (*found.begin() < lo || *found.rbegin() > hi)
          fail_test(recipe, ", ", bits, " bits: ", names[i], " has integers from ", *found.begin(), " to ",
                    *found.rbegin());
      }
      for (const char *weight : {"a.weight_quantized", "d.weight_quantized"})
        for (const std::int64_t q : int_values(value_named(g, weight).constant, weight))
          if (q < -(1 << (bits - 1)) || q >= 1 << (bits - 1)) fail_test(recipe, ": ", weight, " has ", q);
      const QuantizerPtr of_input = value_named(g, "x").quantizer;
      if (of_input->scale() * 100 > 2) fail_test(recipe, ": the input has a scale of ", of_input->scale());
    }
}

/// [-1, 2] in 15 steps, and in 255 where nothing limits them.
void grids_fill_the_bits(void **) {
  GraphBuilder builder;
  builder.input("x", {1, 1, 1, 2}).constant("one", floats({1, 1, 1, 1}, {1}));
  builder.node("Conv", "a", {"x", "one"}, {"u"}).node("Conv", "b", {"u", "one"}, {"y"});
  PreparedModel p = prepare(builder.build({"y"}), with_bits("onnx", 4));
  calibrate_on(p, floats({1, 1, 1, 2}, {-1, 2}));
  const graph::Graph g = convert(p, nullptr);
  const QuantizerPtr u = value_named(g, "u").quantizer, x = value_named(g, "x").quantizer;
  assert_true(u->scale() == static_cast<double>(0.2f) && u->zero_point() == 5);
  assert_true(x->scale() == static_cast<double>(static_cast<float>(3.0 / 255)) && x->zero_point() == 85);
  const Tensor one = value_named(g, "one_quantized").constant;
  assert_int_equal(int_values(one, "one")[0], 7);
}

void a_bounded_function_fills_its_range(void **) {
  for (const char *recipe : {"fbgemm", "tflite"}) {
    const graph::Graph g = convert(calibrated_network(with_bits(recipe, 4)), nullptr);
    const QuantizerPtr p = value_named(g, "p").quantizer;
    assert_true(p->scale() == 1.0 / 16);
    assert_int_equal(p->zero_point(), p->dtype() == QTN_INT8 ? -8 : 0);
    const Tensor x = loud();
    const std::set<std::int64_t> found = integers(g, "p", graph::evaluate(g, std::span(&x, 1))[3]);
    assert_int_equal(*found.rbegin() - *found.begin(), 15);
  }
}

void engines_agree(void **) {
  for (const char *recipe : kRecipes) {
    const graph::Graph g = convert(calibrated_network(with_bits(recipe, 4)), nullptr);
    const runtime::Session native(g, {});
    const Tensor quiet = GraphBuilder::ramp({1, 4, 3, 3}), extreme = loud();
    for (const Tensor *x : {&quiet, &extreme}) {
      const Tensor *inputs[] = {x};
      const std::vector<Tensor> want = graph::evaluate(g, std::span(x, 1)), got = native.run(inputs);
      for (std::size_t i = 0; i < want.size(); ++i)
        if (float_values(got[i], "got") != float_values(want[i], "want"))
          fail_test(recipe, ": engines differ in output ", i);
    }
  }
}

/// QuantizeLinear knows all of its type: it is the Clip before it that keeps the integers few.
void files_keep_the_bits(void **) {
  const graph::Graph g = convert(calibrated_network(with_bits("onnx", 4)), nullptr);
  const Tensor x = loud();
  const std::vector<Tensor> want = graph::evaluate(g, std::span(&x, 1));
  for (const onnx::Format format : {onnx::Format::qdq, onnx::Format::qoperator}) {
    const std::string bytes = onnx::serialize(g, {.format = format});
    const graph::Graph read = onnx::parse(std::as_bytes(std::span(bytes)), "");
    const std::vector<Tensor> got = graph::evaluate(read, std::span(&x, 1));
    for (std::size_t i = 0; i < want.size(); ++i)
      if (float_values(got[i], "got") != float_values(want[i], "want"))
        fail_test("format ", static_cast<int>(format), ": output ", i, " differs");
  }
}

/// The same of a value that is read as a float, too, and lies on its grid as a copy.
void files_keep_the_bits_of_copies(void **) {
  GraphBuilder b;
  b.input("x", {1, 4, 3, 3})
      .node("Neg", "neg", {"x"}, {"v"})
      .conv("c", "v", "y", 4, 2)
      .node("Sin", "sin", {"v"}, {"z"});
  PreparedModel p = prepare(b.build({"y", "z"}), with_bits("onnx", 4));
  calibrate_on(p, GraphBuilder::ramp({1, 4, 3, 3}));
  const graph::Graph g = convert(p, nullptr);
  const Tensor x = loud();
  const std::vector<Tensor> want = graph::evaluate(g, std::span(&x, 1));
  const std::string bytes = onnx::serialize(g, {});
  const std::vector<Tensor> got = graph::evaluate(onnx::parse(std::as_bytes(std::span(bytes)), ""), std::span(&x, 1));
  assert_true(float_values(got[0], "got") == float_values(want[0], "want"));
}

struct Width {
  std::int64_t bits;
  qdtype dtype;
};
constexpr Width kWidths[] = {{2, QTN_INT2}, {3, QTN_INT4}, {4, QTN_INT4}, {5, QTN_INT8}, {7, QTN_INT8}, {8, QTN_INT8}};

/// The weights of a node as int8, whatever stores them: the range is cut to so many bits.
Tensor in_bytes(const PreparedModel &p, std::size_t n, std::int64_t bits) {
  const graph::Node &node = p.graph.nodes[n];
  Attrs settings = p.placement.nodes[n].settings->weight;
  settings.set("dtype", "int8");
  settings.set("quant_min", -(std::int64_t{1} << (bits - 1)));
  settings.set("quant_max", (std::int64_t{1} << (bits - 1)) - 1);
  settings.set("axis", static_cast<std::int64_t>(graph::output_channel_axis(node)));
  const auto observer = make_observer(p.placement.nodes[n].settings->weight_observer, settings);
  const Tensor &weight = p.graph.value(node.inputs[1]).constant;
  observer->observe(weight);
  return quantize(weight, observer->quantizer());
}

/// Integers and scales are those of as many bits in a byte.
void weights_have_the_narrowest_type(void **) {
  for (const char *recipe : kRecipes)
    for (const auto &[bits, dtype] : kWidths) {
      const Config config = with_bits(recipe, bits);
      const PreparedModel p = calibrated(chain(), config, normal_samples({1, 2, 6, 6}, 2));
      const graph::Graph g = convert(p, nullptr);
      std::size_t weights = 0;
      for (std::size_t n = 0; n < g.nodes.size(); ++n) {
        if (p.placement.nodes[n].role != Role::weighted) continue;
        const std::string what = cat(recipe, ", ", bits, " bits, ", g.nodes[n].name);
        const Tensor q = g.value(g.nodes[n].inputs[1]).constant, want = in_bytes(p, n, bits);
        if (q.dtype() != dtype) fail_test(what, ": ", dtype_name(q.dtype()));
        assert_int_equal(q.nbytes(), (static_cast<std::size_t>(q.count()) * dtype_bits(dtype) + 7) / 8);
        assert_true(q.quantizer()->range() == integer_range(dtype));
        if (int_values(q, "q") != int_values(want, "want")) fail_test(what, ": other integers");
        expect_equal(what, q.quantizer()->scales(), want.quantizer()->scales());
        ++weights;
      }
      assert_int_equal(weights, 4);
      if (graph::evaluate(g, std::vector{normal({2, 2, 6, 6}, 9)}).empty()) fail_test(recipe, ": no outputs");
    }
}

/// Convolutions, one of them depthwise, Gemm both ways round and MatMul; two nodes read one weight.
graph::Graph products() {
  const Attrs channels = attrs({{"group", std::int64_t{5}}}), rows = attrs({{"transB", std::int64_t{1}}});
  GraphBuilder g;
  g.input("x", {1, 5, 3, 3}).conv("a", "x", "u", 5, 5);
  g.constant("k", GraphBuilder::ramp({5, 1, 3, 1})).constant("one", GraphBuilder::ramp({7, 5}));
  g.constant("two", GraphBuilder::ramp({7, 3})).constant("three", GraphBuilder::ramp({3, 3}));
  g.node("Conv", "b", {"u", "k"}, {"v"}, channels).node("Conv", "c", {"v", "a.weight"}, {"w"});
  g.node("GlobalAveragePool", "mean", {"w"}, {"m"}).node("Flatten", "flat", {"m"}, {"f"});
  g.node("Gemm", "d", {"f", "one"}, {"p"}, rows).node("Gemm", "e", {"p", "two"}, {"q"});
  g.node("MatMul", "f", {"q", "three"}, {"y"});
  return g.build({"y"});
}

void products_of_all_kinds(void **) {
  const Tensor x = GraphBuilder::ramp({1, 5, 3, 3});
  for (const char *scheme : {"per_channel_symmetric", "per_tensor_symmetric"})
    for (const std::int64_t narrow : {0, 1})
      for (const auto &[bits, dtype] : kWidths) {
        const std::string what = cat(scheme, ", ", bits, " bits");
        Config config("onnx");
        const Attrs settings =
            attrs({{"weight_bits", bits}, {"weight_scheme", scheme}, {"weight_narrow_range", narrow}});
        config.set("*", &settings);
        PreparedModel p = prepare(products(), config);
        calibrate_on(p, x);
        const graph::Graph g = convert(p, nullptr);
        graph::Graph of_session = g;
        graph::run_passes(of_session, graph::Pipeline::inference);
        for (const char *name : {"a", "b", "c", "d", "e", "f"}) {
          const graph::Node &node = node_named(g, name);
          assert_true(graph::integer_form(g, node) == graph::IntegerForm::linear);
          const Tensor &q = g.value(node.inputs[1]).constant;
          assert_int_equal(q.dtype(), dtype);
          assert_int_equal(of_session.value(node_named(of_session, name).inputs[1]).constant.dtype(), dtype);
          const std::vector<std::int64_t> values = int_values(q, name);
          const auto [low, high] = std::minmax_element(values.begin(), values.end());
          const std::int64_t largest = (std::int64_t{1} << (bits - 1)) - 1;
          assert_true(*low >= -largest - 1 + narrow && *high <= largest && std::max(-*low, *high) >= largest);
        }
        assert_int_equal(node_named(g, "a").inputs[1], node_named(g, "c").inputs[1]);
        const std::vector<float> want = float_values(graph::evaluate(g, std::span(&x, 1))[0], "want");
        const Tensor *inputs[] = {&x};
        if (float_values(runtime::Session(g, {}).run(inputs)[0], "got") != want) fail_test(what, ": engines differ");
        for (const int opset : {13, 20, 21, 25})
          for (const onnx::Format format : {onnx::Format::qdq, onnx::Format::qoperator}) {
            const std::string bytes = onnx::serialize(g, {opset, format});
            const graph::Graph read = onnx::parse(std::as_bytes(std::span(bytes)), "");
            if (float_values(graph::evaluate(read, std::span(&x, 1))[0], "read") != want)
              fail_test(what, ", opset ", opset, ", format ", static_cast<int>(format), ": the file differs");
          }
      }
}

/// "weight_dtype" int4 says what "weight_bits" 4 says; fewer bits may be asked of it, but not more.
void one_meaning_of_four_bits(void **) {
  const graph::Node conv{"n", ops::find_op("Conv"), {}, {}, {}, {}};
  const auto weight = [&](const Attrs &settings) {
    Config config("fbgemm");
    config.set("*", &settings);
    return weight_observer_settings(conv, *config.settings_for(conv));
  };
  const ObserverSettings by_type = weight(attrs({{"weight_dtype", "int4"}})),
                         by_bits = weight(attrs({{"weight_bits", std::int64_t{4}}})),
                         three = weight(attrs({{"weight_dtype", "int4"}, {"weight_bits", std::int64_t{3}}}));
  assert_true(by_type == by_bits && by_bits.dtype == QTN_INT4 && !by_bits.choose.range);
  assert_true(three == weight(attrs({{"weight_bits", std::int64_t{3}}})));
  assert_true(three.dtype == QTN_INT4 && three.choose.range && three.choose.range->lo == -4 &&
              three.choose.range->hi == 3);
  expect_error(QTN_EINVAL, "weight_bits is 5, weight_dtype \"int4\" has 4", [&] {
    weight(attrs({{"weight_dtype", "int4"}, {"weight_bits", std::int64_t{5}}}));
  });
}

/// The largest weight of each output channel; float32 has no power of two below 2^-149.
constexpr float kMagnitudes[] = {0, 0x1p-149f, 1e-42f, 1e-39f, 1.2e-38f, 1e-30f, 1e-8f, 6e-5f, 1, 1e30f, 3e38f};

graph::Graph of_magnitudes(bool bias) {
  const auto channels = static_cast<std::int64_t>(std::size(kMagnitudes));
  std::vector<float> values;
  for (const float largest : kMagnitudes) values.insert(values.end(), {largest, -largest / 3, 0});
  GraphBuilder g;
  g.input("x", {1, 1, 1, 3}).constant("w", floats({channels, 1, 1, 3}, values));
  std::vector<std::string> inputs{"x", "w"};
  if (bias) {
    g.constant("b", floats({channels}, std::vector<float>(static_cast<std::size_t>(channels), 0.5f)));
    inputs.push_back("b");
  }
  return g.node("Conv", "conv", inputs, {"y"}).build({"y"});
}

bool is_float32(double v) { return static_cast<double>(static_cast<float>(v)) == v; }

/// Whatever the size of the weights, their scales are positive numbers of float32, and a file says the same.
void scales_of_all_sizes(void **) {
  const Tensor x = floats({1, 1, 1, 3}, {0.25f, -1, 0.75f});
  for (const char *recipe : kRecipes)
    for (const auto &[bits, dtype] : kWidths)
      for (const char *scheme : {"per_channel_symmetric", "per_tensor_symmetric"})
        for (const bool bias : {false, true}) {
          const std::string what = cat(recipe, ", ", bits, " bits, ", scheme, bias ? ", bias" : "");
          Config config(recipe);
          const Attrs settings = attrs({{"weight_bits", bits}, {"weight_scheme", scheme}});
          config.set("*", &settings);
          PreparedModel p = prepare(of_magnitudes(bias), config);
          calibrate_on(p, x);
          const graph::Graph g = convert(p, nullptr);
          const Tensor q = g.value(node_named(g, "conv").inputs[1]).constant;
          const std::vector<float> real = float_values(dequantize(q), "real"),
                                   want = float_values(p.graph.value(p.graph.nodes[0].inputs[1]).constant, "want");
          for (std::size_t i = 0; i < real.size(); ++i) {
            const double scale = q.quantizer()->scales()[q.quantizer()->per_channel() ? i / 3 : 0];
            if (!(scale > 0) || !is_float32(scale)) fail_test(what, ": scale ", scale, " of weight ", i);
            const double away = std::fabs(static_cast<double>(real[i]) - static_cast<double>(want[i]));
            // A scale below 2^-126 is a multiple of 2^-149.
            const double rounded_scale = std::ldexp(1.0, static_cast<int>(bits) - 1 - 150);
            if (!(away <= 0.5001 * scale + rounded_scale))
              fail_test(what, ": weight ", want[i], " is ", real[i], " by ", scale);
          }
          const std::vector<Tensor> y = graph::evaluate(g, std::span(&x, 1));
          const Tensor *inputs[] = {&x};
          if (float_values(runtime::Session(g, {}).run(inputs)[0], "y") != float_values(y[0], "y"))
            fail_test(what, ": the engines differ");
          for (const int opset : {13, 25}) {
            const std::string bytes = onnx::serialize(g, {opset});
            const graph::Graph read = onnx::parse(std::as_bytes(std::span(bytes)), "");
            for (const graph::Node &node : read.nodes)
              for (std::size_t i = 1; i < node.inputs.size(); ++i) {
                const graph::Value &got = read.value(node.inputs[i]);
                const graph::Value &had = g.value(node_named(g, node.name).inputs[i]);
                if (!had.quantizer) continue;
                assert_true(got.quantizer->scales() == had.quantizer->scales());
                assert_true(int_values(got.constant, "got") == int_values(had.constant, "had"));
              }
            assert_true(value_named(read, "x").quantizer->scales() == value_named(g, "x").quantizer->scales());
            if (float_values(graph::evaluate(read, std::span(&x, 1))[0], "read") != float_values(y[0], "y"))
              fail_test(what, ", opset ", opset, ": the file differs");
          }
        }
}

/// What a rule for one value, or the search for a target, makes 16 bits wide has all of them.
void sixteen_bits_among_few(void **) {
  Config config = with_bits("onnx", 4);
  const Attrs wide = attrs({{"activation_dtype", "int16"}});
  config.set("tensor:w", &wide);
  const graph::Graph g = convert(calibrated_network(config), nullptr);
  assert_true(value_named(g, "w").quantizer->dtype() == QTN_INT16 &&
              value_named(g, "s").quantizer->dtype() == QTN_UINT8);
  const double step = value_named(g, "w").quantizer->scale();
  assert_true(value_named(convert(calibrated_network(with_bits("onnx", 4)), nullptr), "w").quantizer->scale() / step >
              1000);

  const Samples samples = normal_samples({1, 4, 3, 3}, 4);
  const Attrs options = attrs({{"target_sqnr", 60.0}, {"fallback", "int16"}});
  const graph::Graph reached = quantize(network(), with_bits("onnx", 4), samples, &options, {}).graph;
  assert_true(std::ranges::any_of(
      reached.values, [](const graph::Value &v) { return v.quantizer && v.quantizer->dtype() == QTN_INT16; }));
}

/// A recurrent layer whose weights are integers multiplies them also where its states come to few bits behind it.
void states_of_few_bits(void **) {
  GraphBuilder b;
  b.input("x", {3, 2, 4}).constant("w", normal({1, 5, 4}, 1, 0.5f)).constant("r", normal({1, 5, 5}, 2, 0.5f));
  b.constant("v", normal({5, 6}, 3, 0.5f));
  b.node("RNN", "rnn", {"x", "w", "r"}, {"s", "last"}, attrs({{"hidden_size", std::int64_t{5}}}))
      .node("MatMul", "head", {"s", "v"}, {"y"});
  Config config = with_bits("onnx", 3);
  const Attrs dynamic = attrs({{"mode", "dynamic"}});
  config.set("op:RNN", &dynamic);
  PreparedModel p = prepare(b.build({"y", "last"}), config);
  const Tensor x = normal({3, 2, 4}, 4);
  calibrate_on(p, x);
  const graph::Graph g = convert(p, nullptr);
  assert_true(graph::integer_form(g, node_named(g, "rnn")) == graph::IntegerForm::recurrent);
  const std::string bytes = onnx::serialize(g, {});
  const graph::Graph read = onnx::parse(std::as_bytes(std::span(bytes)), "");
  const Tensor *inputs[] = {&x};
  const std::vector<Tensor> here = runtime::Session(g, {}).run(inputs), there = runtime::Session(read, {}).run(inputs);
  for (std::size_t o = 0; o < 2; ++o) assert_true(float_values(here[o], "here") == float_values(there[o], "there"));
}

void bits_are_checked(void **) {
  Config config("onnx");
  const auto set = [&](const Attrs &a) { config.set("*", &a); };
  expect_error(QTN_EINVAL, "weight_bits is 1, not from 2 to 8", [&] {
    set(attrs({{"weight_bits", std::int64_t{1}}}));
  });
  expect_error(QTN_EINVAL, "activation_bits is 9", [&] { set(attrs({{"activation_bits", std::int64_t{9}}})); });
  expect_error(QTN_EUNSUPPORTED, "activation_bits is for types of 8 bits, not for int16", [&] {
    set(attrs({{"activation_bits", std::int64_t{4}}, {"activation_dtype", "int16"}}));
  });
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {
      cmocka_unit_test(integers_have_so_many_bits),
      cmocka_unit_test(grids_fill_the_bits),
      cmocka_unit_test(a_bounded_function_fills_its_range),
      cmocka_unit_test(engines_agree),
      cmocka_unit_test(files_keep_the_bits),
      cmocka_unit_test(files_keep_the_bits_of_copies),
      cmocka_unit_test(weights_have_the_narrowest_type),
      cmocka_unit_test(products_of_all_kinds),
      cmocka_unit_test(one_meaning_of_four_bits),
      cmocka_unit_test(scales_of_all_sizes),
      cmocka_unit_test(states_of_few_bits),
      cmocka_unit_test(sixteen_bits_among_few),
      cmocka_unit_test(bits_are_checked),
  };
  return cmocka_run_group_tests_name("few_bits", tests, nullptr, nullptr);
}
