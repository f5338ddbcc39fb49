// SPDX-License-Identifier: Apache-2.0
// Quantization without data: which nodes it takes, on which grids, and how near the results are.
#include <cmath>

#include "core/scales.hpp"
#include "graph/evaluate.hpp"
#include "graph/integer.hpp"
#include "ops/eager.hpp"
#include "quant/golden_network.hpp"
#include "quant/graph_builder.hpp"
#include "quant/quantize_dynamic.hpp"
#include "quant/weights_only.hpp"
#include "runtime/session.hpp"

namespace qtn::test {
namespace {

std::vector<std::string> operators(const graph::Graph &g) {
  std::vector<std::string> names;
  for (const graph::Node &node : g.nodes) names.emplace_back(node.op->name);
  return names;
}

void expect_operators(const graph::Graph &g, const std::vector<std::string> &want) {
  const std::vector<std::string> got = operators(g);
  if (got == want) return;
  std::string text;
  for (const std::string &name : got) text += " " + name;
  fail_test("operators are", text);
}

double sqnr_db(const graph::Graph &float_graph, const graph::Graph &g) {
  const Tensor x = GraphBuilder::ramp(*float_graph.value(float_graph.inputs[0]).shape);
  const Tensor want = graph::evaluate(float_graph, std::span(&x, 1))[0], got = graph::evaluate(g, std::span(&x, 1))[0];
  assert_true(got.shape() == want.shape());
  double signal = 0, noise = 0;
  for (std::int64_t i = 0; i < want.count(); ++i) {
    const double w = want.as<const float>()[i], d = got.as<const float>()[i] - w;
    signal += w * w;
    noise += d * d;
  }
  return 10 * std::log10(signal / noise);
}

Attrs node_settings(const nlohmann::json &items) {
  Attrs a;
  for (const auto &[key, value] : items.items()) a.set(key, value.get<std::string>());
  return a;
}

/// The same two layers by linear(), whose numerics are those of the weights' quantizer.
Tensor by_linear(const graph::Graph &g, const std::string &recipe, Tensor x) {
  const Numerics numerics = recipe == "qnnpack" ? Numerics::qnnpack : Numerics::fbgemm;
  for (const std::string layer : {"first", "second"}) {
    constexpr std::int32_t kBack[] = {1, 0};
    const std::vector<float> scales = float_values(value_named(g, layer + ".weight_scale").constant, "scale");
    const Tensor rows = value_named(g, layer + ".weight_quantized").constant.permute(kBack).to_contiguous();
    const auto grid = std::make_shared<Quantizer>(
        QTN_INT8, scales.size() > 1 ? QTN_PER_CHANNEL_AFFINE : QTN_PER_TENSOR_AFFINE, 0,
        std::vector<double>(scales.begin(), scales.end()), std::vector<std::int64_t>(scales.size(), 0), numerics);
    const bool first = layer == "first";
    x = ops::linear(x, rows.with_quantizer(grid), first ? &value_named(g, "first.bias").constant : nullptr, nullptr);
    if (first) ops::clamp_elements(x, {0, std::numeric_limits<float>::infinity()});
  }
  return x;
}

/// MatMul, Gemm of transposed weights with factors, and a Conv before them.
graph::Graph network() {
  GraphBuilder b;
  b.input("x", {2, 4, 5, 5}).constant("cw", GraphBuilder::ramp({6, 2, 3, 3})).constant("cb", GraphBuilder::ramp({6}));
  b.node("Conv", "conv", {"x", "cw", "cb"}, {"c"}, attrs({{"group", std::int64_t{2}}}));
  b.node("Flatten", "flatten", {"c"}, {"f"});
  b.constant("w", GraphBuilder::ramp({54, 20})).constant("row", GraphBuilder::ramp({1, 20}));
  b.node("MatMul", "first", {"f", "w"}, {"m"})
      .node("Add", "bias", {"m", "row"}, {"h"})
      .node("Relu", "relu", {"h"}, {"r"});
  b.constant("v", GraphBuilder::ramp({7, 20})).constant("vb", GraphBuilder::ramp({7}));
  b.node("Gemm", "second", {"r", "v", "vb"}, {"y"},
         attrs({{"transB", std::int64_t{1}}, {"alpha", 0.5}, {"beta", 2.0}}));
  return b.build({"y"});
}

void test_products(void **) {
  const graph::Graph g = quant::quantize_dynamic(network(), quant::Config("onnx"), {});
  expect_operators(g, {"Conv", "Flatten", "DynamicQuantizeMatMul", "Relu", "DynamicQuantizeMatMul"});
  assert_true(sqnr_db(network(), g) > 35);
  // Weights are those of the recipe: per channel in [-127, 127], the largest of a column at an end.
  const graph::Node &second = node_named(g, "second");
  const Tensor &w = g.value(second.inputs[1]).constant, &scales = g.value(second.inputs[2]).constant;
  assert_true(w.dtype() == QTN_INT8 && w.shape() == Shape({20, 7}) && scales.shape() == Shape{7});
  for (std::int64_t c = 0; c < 7; ++c) {
    int largest = 0;
    for (std::int64_t k = 0; k < 20; ++k)
      largest = std::max(largest, std::abs(int{w.as<const std::int8_t>()[k * 7 + c]}));
    assert_int_equal(largest, 127);
  }
}

void test_convolutions(void **) {
  const graph::Graph g = quant::quantize_dynamic(network(), quant::Config("onnx"), {.convolutions = true});
  expect_operators(g, {"DynamicQuantizeConv", "Flatten", "DynamicQuantizeMatMul", "Relu", "DynamicQuantizeMatMul"});
  assert_true(sqnr_db(network(), g) > 35);
}

void test_settings(void **) {
  quant::Config config("onnx");
  config.set("node:second", nullptr);
  const Attrs whole = attrs({{"weight_scheme", "per_tensor_symmetric"}});
  config.set("node:first", &whole);
  const graph::Graph g = quant::quantize_dynamic(network(), config, {});
  expect_operators(g, {"Conv", "Flatten", "DynamicQuantizeMatMul", "Relu", "Gemm"});
  assert_true(g.value(node_named(g, "first").inputs[2]).constant.shape() == Shape{});

  quant::Config misspelt("onnx");
  misspelt.set("node:secund", nullptr);
  expect_error(QTN_EINVAL, "\"node:secund\": no node has this name; nearest are: second ",
               [&] { quant::quantize_dynamic(network(), misspelt, {}); });

  const Attrs blocks = attrs({{"weight_scheme", "per_block_symmetric"}, {"block_size", std::int64_t{4}}});
  quant::Config other("onnx");
  other.set("op:Gemm", &blocks);
  expect_error(QTN_EUNSUPPORTED, {"dynamic: weight \"w\" of node \"first\"", "would be int8 in blocks,"},
               [&] { quant::quantize_dynamic(network(), other, {}); });
}

/// MatMulInteger has no packed weights: they are few integers, each in a byte.
void test_few_bits(void **) {
  for (const auto &[bits, largest] : {std::pair{std::int64_t{4}, 7}, {std::int64_t{2}, 1}}) {
    quant::Config config("onnx");
    const Attrs few = attrs({{"weight_bits", bits}});
    config.set("*", &few);
    const graph::Graph g = quant::quantize_dynamic(network(), config, {});
    const Tensor w = g.value(node_named(g, "first").inputs[1]).constant;
    assert_int_equal(w.dtype(), QTN_INT8);
    const std::vector<std::int64_t> q = int_values(w, "w");
    assert_int_equal(*std::max_element(q.begin(), q.end()), largest);
    assert_int_equal(*std::min_element(q.begin(), q.end()), -largest);
  }
}

/// Two Linear layers under torch.ao.quantization.quantize_dynamic: the integers and scales of weights to the bit,
/// outputs within the rounding of the last product and sum.
void test_pytorch(void **) {
  const nlohmann::json file = golden("quant/dynamic_linear.json");
  GraphBuilder b;
  b.input("x", {-1, 17});
  for (const auto &[name, tensor] : file.at("constants").items()) b.constant(name, float_tensor(tensor));
  const Attrs transposed = attrs({{"transB", std::int64_t{1}}});
  b.node("Gemm", "first", {"x", "first.weight", "first.bias"}, {"h"}, transposed).node("Relu", "relu", {"h"}, {"r"});
  b.node("Gemm", "second", {"r", "second.weight"}, {"y"}, transposed);
  const graph::Graph float_graph = b.build({"y"});
  for (const auto &c : file.at("cases")) {
    const std::string recipe = c.at("recipe");
    quant::Config config(recipe);
    const Attrs settings = node_settings(c.at("settings"));
    config.set("*", &settings);
    const graph::Graph g = quant::quantize_dynamic(float_graph, config, {});
    for (const auto &[name, want] : c.at("weights").items()) {
      const Tensor &q = value_named(g, name + "_quantized").constant;
      constexpr std::int32_t kBack[] = {1, 0};
      expect_equal(recipe + " " + name, as_doubles(int_values(q.permute(kBack).to_contiguous(), "q")),
                   numbers(want.at("q")));
      expect_equal(recipe + " " + name, as_doubles(float_values(value_named(g, name + "_scale").constant, "scale")),
                   as_doubles(float_values(float_tensor(want.at("scale")), "scale")));
    }
    for (const auto &[name, output] : c.at("outputs").items()) {
      const Tensor x = float_tensor(file.at("inputs").at(name)), want = float_tensor(output);
      const Tensor *inputs[] = {&x};
      const Tensor got = runtime::Session(g, {}).run(inputs)[0];
      float largest = 0;
      for (std::int64_t i = 0; i < want.count(); ++i) largest = std::max(largest, std::abs(want.as<const float>()[i]));
      for (std::int64_t i = 0; i < want.count(); ++i)
        if (!(std::abs(got.as<const float>()[i] - want.as<const float>()[i]) <= 5e-7f * largest))
          fail_test(recipe, " ", name, ": element ", i, " is ", got.as<const float>()[i], ", want ",
                    want.as<const float>()[i]);
      if (!equal(got, by_linear(g, recipe, x))) fail_test(recipe, " ", name, ": linear() has other bits");
    }
  }
  assert_int_equal(file.at("cases").size(), 5);
}

/// Recipes without reduce_range, and those of systems that have no such grids.
void test_numerics(void **) {
  const std::pair<const char *, const char *> names[] = {
      {"fbgemm", "fbgemm"}, {"x86", "fbgemm"},  {"qnnpack", "qnnpack"}, {"onednn", "qnnpack"},
      {"onnx", "onnx"},     {"nvidia", "onnx"}, {"tflite", "onnx"}};
  for (const auto &[recipe, numerics] : names)
    for (const bool convolutions : {false, true}) {
      const graph::Graph g = quant::quantize_dynamic(network(), quant::Config(recipe), {.convolutions = convolutions});
      int seen = 0;
      for (const graph::Node &node : g.nodes)
        if (graph::is_dynamic_product(node)) {
          assert_string_equal(node.attrs.get_string("numerics", "onnx").c_str(), numerics);
          ++seen;
        }
      assert_int_equal(seen, convolutions ? 3 : 2);
    }
  quant::Config wide("fbgemm");
  const Attrs all_bits = attrs({{"reduce_range", std::int64_t{0}}});
  wide.set("node:second", &all_bits);
  const graph::Graph g = quant::quantize_dynamic(network(), wide, {});
  assert_string_equal(node_named(g, "first").attrs.get_string("numerics", "").c_str(), "fbgemm");
  assert_string_equal(node_named(g, "second").attrs.get_string("numerics", "").c_str(), "qnnpack");
}

/// Products without constant weights, of sums that files cannot hold, with a bias of another form.
void test_what_stays(void **) {
  GraphBuilder b;
  b.input("x", {3, 3}).input("u", {1, graph::kWeightDepth + 1}).constant("w", GraphBuilder::ramp({3, 3}));
  b.constant("deep", GraphBuilder::ramp({graph::kWeightDepth + 1, 1})).constant("cube", GraphBuilder::ramp({2, 3, 3}));
  b.node("MatMul", "activations", {"x", "x"}, {"a"}).node("MatMul", "left", {"w", "x"}, {"l"});
  b.node("MatMul", "batches", {"x", "cube"}, {"c"}).node("MatMul", "deep", {"u", "deep"}, {"d"});
  b.node("Gemm", "transposed", {"x", "w"}, {"t"}, attrs({{"transA", std::int64_t{1}}}));
  b.node("Gemm", "added", {"x", "w", "x"}, {"g"});
  const graph::Graph g = b.build({"a", "l", "c", "d", "t", "g"});
  expect_operators(quant::quantize_dynamic(g, quant::Config("onnx"), {.convolutions = true}), operators(g));
}

void test_refused(void **) {
  const graph::Graph dynamic = quant::quantize_dynamic(network(), quant::Config("onnx"), {});
  const graph::Graph weights = quant::quantize_weights(network(), {});
  for (const graph::Graph *g : {&dynamic, &weights}) {
    expect_error(QTN_EUNSUPPORTED, "dynamic: the model is quantized already",
                 [&] { quant::quantize_dynamic(*g, quant::Config("onnx"), {}); });
    expect_error(QTN_EUNSUPPORTED, "weights: the model is quantized already", [&] { quant::quantize_weights(*g, {}); });
    expect_error(QTN_EUNSUPPORTED, "prepare: the model is quantized already",
                 [&] { quant::prepare(*g, quant::Config("onnx")); });
  }
  GraphBuilder b;
  b.input("x", {1, 2}).constant("w", floats({2, 1}, {1, NAN})).node("MatMul", "product", {"x", "w"}, {"y"});
  const graph::Graph g = b.build({"y"});
  expect_error(QTN_EINVAL, {"dynamic: weight \"w\" of node \"product\"", "nan"},
               [&] { quant::quantize_dynamic(g, quant::Config("onnx"), {}); });
  expect_error(QTN_EINVAL, {"weights: weight \"w\" of node \"product\"", "nan"},
               [&] { quant::quantize_weights(g, {}); });
}

/// Scales are amax / 127 or amax / 7, and each weight is on the nearest point of its grid.
void expect_near(const graph::Graph &g, const char *node) {
  const graph::Graph float_graph = network();
  const Tensor &want = float_graph.value(node_named(float_graph, node).inputs[1]).constant;
  const Tensor &q = g.value(node_named(g, node).inputs[1]).constant, got = dequantize(q);
  const std::vector<double> &scales = q.quantizer()->scales();
  const ScaleLayout at = scale_layout(*q.quantizer(), q.shape());
  std::vector<double> largest(scales.size(), 0);
  for (std::int64_t i = 0; i < want.count(); ++i) {
    const std::int64_t inner = i % at.inner, d = i / at.inner % at.dim, outer = i / at.inner / at.dim;
    const auto s =
        static_cast<std::size_t>(outer * at.outer_step + d / at.block * at.axis_step + inner * at.inner_step);
    const double w = want.as<const float>()[i];
    largest[s] = std::max(largest[s], std::abs(w));
    if (std::abs(got.as<const float>()[i] - w) > 0.50001 * scales[s])
      fail_test(node, ": element ", i, " is ", got.as<const float>()[i], ", want ", w);
  }
  for (std::size_t s = 0; s < scales.size(); ++s)
    if (std::abs(scales[s] - largest[s] / (dtype_bits(q.dtype()) == 8 ? 127 : 7)) > 1e-6 * scales[s])
      fail_test(node, ": scale ", s, " is ", scales[s], " for ", largest[s]);
}

void test_weights_only(void **) {
  const graph::Graph g = quant::quantize_weights(network(), {QTN_INT8, 0});
  expect_operators(g, operators(network()));
  const struct {
    const char *node;
    std::int32_t axis;
    std::size_t count;
  } grids[] = {{"conv", 0, 6}, {"first", 1, 20}, {"second", 0, 7}};
  for (const auto &[node, axis, count] : grids) {
    const Quantizer &q = *g.value(node_named(g, node).inputs[1]).quantizer;
    expect_near(g, node);
    assert_true(q.scheme() == QTN_PER_CHANNEL_SYMMETRIC && q.axis() == axis && q.count() == count);
  }
}

/// Along the axis that is summed over; a whole channel where that is shorter than a block.
void test_weights_in_blocks(void **) {
  const graph::Graph g = quant::quantize_weights(network(), {QTN_INT4, 16});
  const struct {
    const char *node;
    qscheme scheme;
    std::int32_t axis;
    std::size_t count;
  } grids[] = {{"conv", QTN_PER_CHANNEL_SYMMETRIC, 0, 6},
               {"first", QTN_PER_BLOCK_SYMMETRIC, 0, 4 * 20},
               {"second", QTN_PER_BLOCK_SYMMETRIC, 1, 7 * 2}};
  for (const auto &[node, scheme, axis, count] : grids) {
    const Quantizer &q = *g.value(node_named(g, node).inputs[1]).quantizer;
    expect_near(g, node);
    assert_true(q.dtype() == QTN_INT4 && q.scheme() == scheme && q.axis() == axis && q.count() == count);
  }
}

/// Nodes that read the same weights share their integers, unless channels are along another axis.
void test_shared_weights(void **) {
  GraphBuilder b;
  b.input("x", {2, 6}).constant("w", GraphBuilder::ramp({6, 6}));
  b.node("MatMul", "a", {"x", "w"}, {"y"}).node("MatMul", "b", {"y", "w"}, {"z"});
  b.node("Gemm", "c", {"z", "w"}, {"u"}, attrs({{"transB", std::int64_t{1}}}));
  const graph::Graph g = quant::quantize_weights(b.build({"u"}), {});
  assert_int_equal(node_named(g, "a").inputs[1], node_named(g, "b").inputs[1]);
  assert_int_not_equal(node_named(g, "a").inputs[1], node_named(g, "c").inputs[1]);
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::test::test_products),       cmocka_unit_test(qtn::test::test_convolutions),
      cmocka_unit_test(qtn::test::test_settings),       cmocka_unit_test(qtn::test::test_few_bits),
      cmocka_unit_test(qtn::test::test_what_stays),     cmocka_unit_test(qtn::test::test_pytorch),
      cmocka_unit_test(qtn::test::test_numerics),       cmocka_unit_test(qtn::test::test_refused),
      cmocka_unit_test(qtn::test::test_weights_only),   cmocka_unit_test(qtn::test::test_weights_in_blocks),
      cmocka_unit_test(qtn::test::test_shared_weights),
  };
  return cmocka_run_group_tests_name("quant/dynamic", tests, nullptr, nullptr);
}
