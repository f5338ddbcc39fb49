// SPDX-License-Identifier: Apache-2.0
// Constants of models by the names that their files have, whatever passes have made of them.
#include "graph/tensors.hpp"

#include "graph/evaluate.hpp"
#include "graph/passes/passes.hpp"
#include "onnx/onnx.hpp"
#include "quant/calibrate.hpp"
#include "quant/graph_builder.hpp"
#include "quant/quantize_dynamic.hpp"
#include "quant/weights_only.hpp"

namespace qtn::test {
namespace {

/// Conv with a normalization behind it, and a Gemm whose weights a Transpose turns.
graph::Graph network() {
  GraphBuilder b;
  b.input("x", {2, 3, 4, 4}).constant("conv.weight", GraphBuilder::ramp({5, 3, 3, 3}));
  for (const char *name : {"scale", "offset", "mean"}) b.constant(name, GraphBuilder::ramp({5}));
  b.constant("variance", floats({5}, {1, 2, 0.5f, 4, 1})).constant("fc.weight", GraphBuilder::ramp({6, 20}));
  b.constant("fc.bias", GraphBuilder::ramp({6}));
  b.node("Conv", "conv", {"x", "conv.weight"}, {"c"});
  b.node("BatchNormalization", "bn", {"c", "scale", "offset", "mean", "variance"}, {"n"});
  b.node("Relu", "relu", {"n"}, {"r"}).node("Flatten", "flatten", {"r"}, {"f"});
  b.node("Transpose", "turn", {"fc.weight"}, {"turned"}, attrs({{"perm", std::vector<std::int64_t>{1, 0}}}));
  b.node("Gemm", "fc", {"f", "turned", "fc.bias"}, {"y"});
  return b.build({"y"});
}

Tensor named(const graph::Graph &g, const std::string &name) {
  return graph::constant_tensor(g, graph::find_constant(g, "test", name));
}

std::string name_of(const graph::Graph &g, const std::string &name) {
  return g.value(graph::find_constant(g, "test", name)).name;
}

graph::Graph through_a_file(const graph::Graph &g) {
  const std::string bytes = onnx::serialize(g, {});
  return onnx::parse(std::as_bytes(std::span(bytes)), "");
}

quant::PreparedModel prepared(const Attrs &settings = {}) {
  quant::Config config("onnx");
  config.set("*", &settings);
  quant::PreparedModel p = quant::prepare(network(), config);
  const Tensor x = GraphBuilder::ramp({2, 3, 4, 4});
  const Tensor *inputs[] = {&x};
  quant::calibrate(p, inputs);
  return p;
}

void original_names_lead_to_what_was_made(void **) {
  const graph::Graph float_graph = network();
  assert_true(equal(named(float_graph, "fc.weight"), GraphBuilder::ramp({6, 20})));
  for (const bool equalized : {false, true}) {
    const quant::PreparedModel p = prepared(attrs({{"equalize", std::int64_t{equalized}}}));
    const graph::Graph converted = quant::convert(p, nullptr), read = through_a_file(converted);
    for (const char *name : {"conv.weight", "fc.weight", "fc.bias"}) {
      assert_true(named(p.graph, name).dtype() == QTN_FLOAT32);
      const Tensor q = named(converted, name);
      assert_true(q.quantized() && q.dtype() == (std::string_view(name) == "fc.bias" ? QTN_INT32 : QTN_INT8));
      assert_true(equal(named(read, name), q));
    }
    if (!equalized) assert_string_equal(name_of(converted, "conv.weight").c_str(), "conv.weight_quantized");
    if (!equalized) assert_string_equal(name_of(converted, "fc.weight").c_str(), "fc.weight_quantized");
    assert_true(named(converted, "conv.weight").shape() == Shape({5, 3, 3, 3}));
    assert_true(named(converted, "fc.weight").shape() == Shape({20, 6}));
  }
}

void endings(void **) {
  const std::pair<const char *, const char *> names[] = {{"w_quantized", "w"},
                                                         {"w_quantized_12", "w"},
                                                         {"w_equalized", "w"},
                                                         {"a_1", ""},
                                                         {"w_quantized_quantized", "w_quantized"},
                                                         {"quantized", ""},
                                                         {"w_quantized1", ""},
                                                         {"", ""},
                                                         {"_7", ""}};
  for (const auto &[name, want] : names)
    if (graph::without_suffix(name) != want) fail_test(name, ": ", std::string(graph::without_suffix(name)));
}

/// A name that a file really has comes before one that was made of another.
void names_that_are_there_come_first(void **) {
  GraphBuilder b;
  b.input("x", {2}).constant("w", floats({2}, {1, 2})).constant("w_scaled", floats({2}, {3, 4}));
  b.node("Add", "a", {"x", "w"}, {"u"}).node("Add", "b", {"u", "w_scaled"}, {"y"});
  const graph::Graph g = b.build({"y"});
  assert_true(equal(named(g, "w"), floats({2}, {1, 2})));
  assert_true(equal(named(g, "w_scaled"), floats({2}, {3, 4})));
  expect_error(QTN_EINVAL, "test: the model has no tensor \"v\"; nearest are: w w_scaled", [&] { named(g, "v"); });
}

/// One constant, read on two grids.
void several_of_one_name(void **) {
  GraphBuilder b;
  b.input("x", {2, 6}).constant("w", GraphBuilder::ramp({6, 6}));
  b.node("MatMul", "a", {"x", "w"}, {"y"});
  b.node("Gemm", "c", {"y", "w"}, {"u"}, attrs({{"transB", std::int64_t{1}}}));
  const graph::Graph g = quant::quantize_weights(b.build({"u"}), {});
  expect_error(QTN_EINVAL, "test: several tensors come from \"w\": w_quantized w_quantized_1", [&] { named(g, "w"); });
  assert_true(named(g, "w_quantized").quantizer()->axis() == 1 && named(g, "w_quantized_1").quantizer()->axis() == 0);
}

/// A bias keeps its value where the scales of the weights beside it are replaced, in both engines and in a file.
void scales_are_replaced(void **) {
  graph::Graph g = quant::convert(prepared(), nullptr);
  const Tensor x = GraphBuilder::ramp({2, 3, 4, 4}), old = named(g, "fc.weight");
  std::vector<double> twice = old.quantizer()->scales();
  for (double &scale : twice) scale *= 2;
  const auto grid = std::make_shared<Quantizer>(QTN_INT8, QTN_PER_CHANNEL_SYMMETRIC, 1, twice,
                                                std::vector<std::int64_t>(twice.size(), 0), Numerics::nvidia);
  const Tensor bias = dequantize(named(g, "fc.bias")), before = graph::evaluate(g, std::span(&x, 1))[0];
  graph::set_constant_tensor(g, "test", "fc.weight", old.with_quantizer(nullptr).with_quantizer(grid));
  assert_true(named(g, "fc.weight").quantizer()->numerics() == Numerics::onnx);
  const Tensor after = graph::evaluate(g, std::span(&x, 1))[0];
  for (std::int64_t i = 0; i < after.count(); ++i) {
    const float b = bias.as<const float>()[i % 6], want = 2 * (before.as<const float>()[i] - b) + b;
    assert_float_equal(after.as<const float>()[i], want, 1e-4f);
  }
  assert_true(equal(graph::evaluate(through_a_file(g), std::span(&x, 1))[0], after));
}

void what_cannot_be_set(void **) {
  GraphBuilder b;
  b.input("x", {1, 1, 2, 2}).constant("scales", floats({4}, {1, 1, 2, 2}));
  b.constant("shape", Tensor::from_ints(std::vector<std::int64_t>{2, 8}));
  b.node("Resize", "resize", {"x", "", "scales"}, {"r"}, attrs({{"mode", "nearest"}}));
  b.node("Reshape", "reshape", {"r", "shape"}, {"y"});
  graph::Graph g = b.build({"y", "r"});
  const auto set = [&](const char *name, const Tensor &t) { graph::set_constant_tensor(g, "test", name, t); };
  expect_error(QTN_EUNSUPPORTED, "tensor \"shape\" is of plain int64; float32 and quantized tensors can be set", [&] {
    set("shape", Tensor::from_ints(std::vector<std::int64_t>{4, 4}));
  });
  expect_error(QTN_ESHAPE, "reshape", [&] { set("scales", floats({4}, {1, 1, 3, 2})); });
  assert_true(equal(named(g, "scales"), floats({4}, {1, 1, 2, 2})));
  g.nodes.pop_back();
  g.outputs.erase(g.outputs.begin());
  expect_error(QTN_EUNSUPPORTED, "tensor \"scales\" says shapes, which t would change", [&] {
    set("scales", floats({4}, {1, 1, 3, 2}));
  });
  assert_true(equal(named(g, "scales"), floats({4}, {1, 1, 2, 2})));
}

void weights_of_dynamic_products(void **) {
  GraphBuilder b;
  b.input("x", {2, 8}).constant("w", GraphBuilder::ramp({8, 3})).node("MatMul", "product", {"x", "w"}, {"y"});
  graph::Graph g = quant::quantize_dynamic(b.build({"y"}), quant::Config("fbgemm"), {});
  const Tensor w = named(g, "w");
  assert_true(w.quantized() && w.quantizer()->axis() == 1 && w.quantizer()->count() == 3);
  const auto set = [&](qscheme scheme, std::int32_t axis, std::vector<double> scales, std::int64_t zero) {
    const std::vector<std::int64_t> zeros(scales.size(), zero);
    const auto grid = std::make_shared<Quantizer>(QTN_INT8, scheme, axis, scales, zeros, Numerics::fbgemm);
    graph::set_constant_tensor(g, "test", "w", w.with_quantizer(nullptr).with_quantizer(grid));
  };
  expect_error(QTN_EUNSUPPORTED, "tensor \"w_quantized\" has no zero points, t has",
               [&] { set(QTN_PER_TENSOR_AFFINE, 0, {0.5}, 3); });
  expect_error(QTN_EUNSUPPORTED, "along axis 1, t has them along axis 0",
               [&] { set(QTN_PER_CHANNEL_AFFINE, 0, std::vector<double>(8, 0.5), 0); });
  assert_true(equal(named(g, "w"), w));
  set(QTN_PER_TENSOR_SYMMETRIC, 0, {0.5}, 0);
  const Tensor x = GraphBuilder::ramp({2, 8});
  assert_true(named(g, "w").quantizer()->per_tensor() && named(g, "w").quantizer()->scale() == 0.5f);
  assert_true(equal(graph::evaluate(through_a_file(g), std::span(&x, 1))[0], graph::evaluate(g, std::span(&x, 1))[0]));
}

void four_bits_in_blocks(void **) {
  GraphBuilder b;
  b.input("x", {2, 8}).constant("w", GraphBuilder::ramp({8, 3})).node("MatMul", "product", {"x", "w"}, {"y"});
  graph::Graph g = quant::quantize_weights(b.build({"y"}), {QTN_INT4, 4});
  const Tensor w = named(g, "w");
  assert_true(w.dtype() == QTN_INT4 && w.quantizer()->per_block() && w.nbytes() == 12);
  graph::set_constant_tensor(g, "test", "w", w);
  assert_true(equal(named(g, "w"), w));
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {
      cmocka_unit_test(original_names_lead_to_what_was_made),
      cmocka_unit_test(endings),
      cmocka_unit_test(names_that_are_there_come_first),
      cmocka_unit_test(several_of_one_name),
      cmocka_unit_test(scales_are_replaced),
      cmocka_unit_test(what_cannot_be_set),
      cmocka_unit_test(weights_of_dynamic_products),
      cmocka_unit_test(four_bits_in_blocks),
  };
  return cmocka_run_group_tests_name("graph/tensors", tests, nullptr, nullptr);
}
