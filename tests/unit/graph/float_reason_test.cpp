// SPDX-License-Identifier: Apache-2.0
// Why a node has no form on integers: what it lacks, not what others of its kind lack.
#include "graph/integer.hpp"
#include "ops/common/dynamic_quantizer.hpp"
#include "quant/graph_builder.hpp"
#include "runtime/session.hpp"

namespace qtn::test {
namespace {

using graph::IntegerForm;

QuantizerPtr grid(double scale, std::int64_t zero, qdtype dtype = QTN_INT8) {
  return std::make_shared<Quantizer>(dtype, QTN_PER_TENSOR_AFFINE, 0, std::vector{scale}, std::vector{zero},
                                     Numerics::onnx);
}

QuantizerPtr grids(std::int32_t axis, std::size_t count) {
  return std::make_shared<Quantizer>(QTN_INT8, QTN_PER_CHANNEL_SYMMETRIC, axis, std::vector<double>(count, 0.01),
                                     std::vector<std::int64_t>(count, 0), Numerics::onnx);
}

Tensor weights(const Shape &shape, const QuantizerPtr &quantizer) {
  return quantize(GraphBuilder::ramp(shape), quantizer);
}

/// Puts values on a grid by name.
graph::Graph on_grids(graph::Graph g, const std::map<std::string, QuantizerPtr> &quantizers) {
  for (graph::Value &value : g.values)
    if (const auto found = quantizers.find(value.name); found != quantizers.end()) value.quantizer = found->second;
  return g;
}

/// What is said of the last node; "" where it has `form`.
void expect_reason(const graph::Graph &g, IntegerForm form, const std::string &want) {
  const graph::Node &node = g.nodes.back();
  assert_string_equal(graph::float_reason(g, node).c_str(), want.c_str());
  assert_true(graph::integer_form(g, node) == (want.empty() ? form : IntegerForm::none));
}

struct Lstm {
  Tensor w = weights({1, 8, 3}, grid(0.01, 0)), r = weights({1, 8, 2}, grid(0.01, 0));
  bool computed_weights = false, computed_bias = false, computed_peepholes = false;

  void expect(const std::string &reason) const {
    GraphBuilder b;
    b.input("x", {5, 1, 3});
    computed_weights ? b.input("w", w.shape()) : b.constant("w", w);
    b.constant("r", r);
    computed_bias ? b.input("b", {1, 16}) : b.constant("b", GraphBuilder::ramp({1, 16}));
    computed_peepholes ? b.input("p", {1, 6}) : b.constant("p", GraphBuilder::ramp({1, 6}));
    b.node("LSTM", "lstm", {"x", "w", "r", "b", "", "", "", "p"}, {"y"}, attrs({{"hidden_size", std::int64_t{2}}}));
    expect_reason(b.build({"y"}), IntegerForm::recurrent, reason);
  }
};

void recurrent_layers(void **) {
  Lstm().expect("");
  Lstm{.w = weights({1, 8, 3}, grids(1, 8))}.expect("");
  Lstm{.computed_weights = true}.expect("its weights are not a constant");
  Lstm{.computed_bias = true}.expect("its bias is not a constant");
  Lstm{.computed_peepholes = true}.expect("its peepholes are not a constant");
  Lstm{.w = GraphBuilder::ramp({1, 8, 3})}.expect("its weights are floats");
  Lstm{.r = GraphBuilder::ramp({1, 8, 2})}.expect("its weights are floats");
  Lstm{.w = weights({1, 8, 3}, grid(0.01, 5))}.expect("its weights have a zero point");
  Lstm{.w = weights({1, 8, 3}, grid(0.01, 0, QTN_UINT8))}.expect("its weights are uint8");
  Lstm{.r = weights({1, 8, 2}, grids(2, 2))}.expect("its weights have scales along axis 2, not for each row");
  Lstm{.w = weights({1, 8, 33026}, grid(0.01, 0))}.expect(
      "an output sums 33026 products, of which integers take 33025");
}

struct DynamicProduct {
  Tensor w = weights({4, 3}, grid(0.01, 0)).with_quantizer(nullptr), scales = Tensor::scalar(0.01f), zeros = {};
  ops::Granularity granularity = ops::Granularity::tensor;
  bool computed_weights = false, computed_bias = false;

  void expect(const std::string &reason) const {
    GraphBuilder b;
    b.input("x", {2, 4});
    computed_weights ? b.input("w", w.shape(), QTN_INT8) : b.constant("w", w);
    b.constant("s", scales);
    if (zeros.has_data()) b.constant("z", zeros);
    computed_bias ? b.input("b", {3}) : b.constant("b", GraphBuilder::ramp({3}));
    Attrs own;
    ops::set_own_grid(own, {Numerics::onnx, granularity});
    b.node("DynamicQuantizeMatMul", "product", {"x", "w", "s", zeros.has_data() ? "z" : "", "b"}, {"y"}, own);
    expect_reason(b.build({"y"}), IntegerForm::dynamic, reason);
  }
};

void dynamic_products(void **) {
  const auto integers = [](const Shape &shape, qdtype dtype = QTN_INT8) {
    const Tensor t(dtype, shape);
    std::fill_n(t.as<std::uint8_t>(), t.count(), std::uint8_t{1});
    return t;
  };
  DynamicProduct().expect("");
  DynamicProduct{.granularity = ops::Granularity::row}.expect("");
  DynamicProduct{.computed_weights = true}.expect("its weights are not a constant");
  DynamicProduct{.w = integers({2, 4, 3})}.expect("its weights have 3 dimensions");
  DynamicProduct{.w = integers({0, 3})}.expect("its weights are empty");
  for (const ops::Granularity granularity : {ops::Granularity::tensor, ops::Granularity::row}) {
    DynamicProduct{.w = integers({graph::kWeightDepth, 3}), .granularity = granularity}.expect("");
    const Tensor large = integers({66312, 3});  // by 127, one less would fit
    std::fill_n(large.as<std::int8_t>(), large.count(), std::int8_t{127});
    DynamicProduct{.w = large, .granularity = granularity}.expect(
        "a sum of 66312 products by its weights may be beyond int32");
  }
  DynamicProduct{.w = integers({graph::kWeightDepth + 1, 3})}.expect(
      "an output sums 1048577 products, of which integers take 1048576");
  for (const DynamicProduct &product : {DynamicProduct{.w = integers({33026, 3}, QTN_UINT8)},
                                        DynamicProduct{.w = integers({33026, 3}), .zeros = integers({3})}})
    product.expect("an output sums 33026 products, of which integers take 33025");
  DynamicProduct{.scales = GraphBuilder::ramp({4})}.expect(
      "its scales are not constants: one, or one for each of 3 columns");
  DynamicProduct{.zeros = integers({2})}.expect("its zero points are not constants: one, or one for each of 3 columns");
  DynamicProduct{.computed_bias = true}.expect("its biases are not constants: one, or one for each of 3 columns");
  DynamicProduct{.scales = Tensor::scalar(-1.0f)}.expect("its scales are not positive float32 numbers");
  DynamicProduct{.w = integers({4, 3}, QTN_UINT8), .granularity = ops::Granularity::row}.expect(
      "its weights are uint8, and rows with grids of their own take int8");
  DynamicProduct{.zeros = integers({3}), .granularity = ops::Granularity::row}.expect(
      "its weights have a zero point, and rows with grids of their own take none");
}

void moved_elements(void **) {
  const QuantizerPtr one = grid(0.02, 3), other = grid(0.05, 0);
  GraphBuilder transpose;
  transpose.input("x", {2, 3}).node("Transpose", "turn", {"x"}, {"y"});
  const graph::Graph turned = transpose.build({"y"});
  expect_reason(on_grids(turned, {{"x", one}, {"y", one}}), IntegerForm::move, "");
  expect_reason(on_grids(turned, {{"x", one}}), IntegerForm::move, "its result is not on a grid of 8 bits");
  expect_reason(on_grids(turned, {{"x", other}, {"y", one}}), IntegerForm::move,
                "what it moves is not on the grid of its result");
  graph::Graph clamped = on_grids(turned, {{"x", one}, {"y", one}});
  clamped.nodes[0].clamp = ops::Clamp{0, 1};
  expect_reason(clamped, IntegerForm::move, "its result is clamped");

  GraphBuilder concat;
  concat.input("a", {2, 3}).input("b", {2, 3});
  concat.node("Concat", "join", {"a", "b"}, {"y"}, attrs({{"axis", std::int64_t{0}}}));
  const graph::Graph joined = concat.build({"y"});
  expect_reason(on_grids(joined, {{"a", one}, {"b", other}, {"y", one}}), IntegerForm::move, "");
  expect_reason(on_grids(joined, {{"a", one}, {"y", one}}), IntegerForm::move,
                "its operands are not on grids of 8 bits");

  GraphBuilder split;
  split.input("x", {2, 4}).node("Split", "split", {"x"}, {"a", "b"}, attrs({{"num_outputs", std::int64_t{2}}}));
  expect_reason(on_grids(split.build({"a", "b"}), {{"x", one}, {"a", one}, {"b", other}}), IntegerForm::move,
                "its results are not all on one grid");
}

void elements(void **) {
  const QuantizerPtr one = grid(0.02, 3);
  GraphBuilder tanh, max, sum, softmax;
  tanh.input("x", {2, 3}).node("Tanh", "tanh", {"x"}, {"y"});
  const graph::Graph unary = tanh.build({"y"});
  expect_reason(on_grids(unary, {{"x", one}, {"y", one}}), IntegerForm::table, "");
  expect_reason(on_grids(unary, {{"y", one}}), IntegerForm::table, "its operand is not on a grid of 8 bits");

  max.input("x", {2, 3}).constant("c", GraphBuilder::ramp({3})).node("Max", "max", {"x", "c"}, {"y"});
  expect_reason(on_grids(max.build({"y"}), {{"x", one}, {"y", one}}), IntegerForm::table,
                "a constant operand has 3 values, and a table takes one");

  sum.input("x", {2, 3}).input("z", {2, 3}).node("Add", "sum", {"x", "z"}, {"y"});
  const graph::Graph added = sum.build({"y"});
  expect_reason(on_grids(added, {{"x", one}, {"z", one}, {"y", one}}), IntegerForm::arithmetic, "");
  expect_reason(on_grids(added, {{"x", one}, {"y", one}}), IntegerForm::arithmetic,
                "its operands are not on grids of 8 bits");

  softmax.input("x", {2, 3}).node("Softmax", "softmax", {"x"}, {"y"});
  expect_reason(on_grids(softmax.build({"y"}), {{"x", one}, {"y", one}}), IntegerForm::none,
                "the operator has no integer form");
}

/// Biases in units of products, which are 1e-8, and what both engines make of those that int32 does not hold.
void biases(void **) {
  for (const float bias : {20.0f, -21.0f, 100.0f, -100.0f}) {
    const Tensor b(QTN_FLOAT32, {3}), x = GraphBuilder::ramp({2, 4});
    std::fill_n(b.as<float>(), 3, bias);
    GraphBuilder gemm;
    gemm.input("x", {2, 4}).constant("w", weights({3, 4}, grid(1e-4, 0))).constant("b", b);
    gemm.node("Gemm", "gemm", {"x", "w", "b"}, {"y"}, attrs({{"transB", std::int64_t{1}}}));
    const graph::Graph g = on_grids(gemm.build({"y"}), {{"x", grid(1e-4, 0)}, {"w", grid(1e-4, 0)}});
    const bool fits = std::fabs(bias) < 21.4f;
    expect_reason(g, IntegerForm::linear, fits ? "" : "a bias is beyond int32 in units of its scales");
    const Tensor *inputs[] = {&x};
    for (const runtime::Engine engine : {runtime::Engine::native, runtime::Engine::reference}) {
      const Tensor y = runtime::Session(g, {.engine = engine}).run(inputs)[0];
      for (std::int64_t i = 0; i < y.count(); ++i)
        assert_float_equal(y.as<const float>()[i], bias, 0.002);  // four products of at most 0.0127 by 0.0127
    }
  }
}

/// As many numbers as there are columns may be one for each row.
void biases_of_rows(void **) {
  const auto expect = [](const Shape &bias, const std::string &reason) {
    const Tensor b = floats({4}, {1, 20, -3, 5}), x = GraphBuilder::ramp({4, 3});
    GraphBuilder gemm;
    gemm.input("x", {4, 3}).constant("w", weights({3, 4}, grid(1e-4, 0))).constant("b", b.reshaped(bias));
    const graph::Graph g = on_grids(gemm.node("Gemm", "gemm", {"x", "w", "b"}, {"y"}).build({"y"}),
                                    {{"x", grid(1e-4, 0)}, {"w", grid(1e-4, 0)}});
    expect_reason(g, IntegerForm::linear, reason);
    const Tensor *inputs[] = {&x};
    for (const runtime::Engine engine : {runtime::Engine::native, runtime::Engine::reference}) {
      const Tensor y = runtime::Session(g, {.engine = engine}).run(inputs)[0];
      for (std::int64_t i = 0; i < y.count(); ++i)
        assert_float_equal(y.as<const float>()[i], b.as<const float>()[bias.back() == 1 ? i / 4 : i % 4], 0.002);
    }
  };
  expect({4}, "");
  expect({1, 4}, "");
  expect({4, 1}, "its bias is 4x1 for 4 output channels");
}

/// Deeper than int32 surely holds: weights and biases decide, and both engines sum up what it does not hold.
void deep_sums(void **) {
  constexpr std::int64_t kDepth = 70000;
  const auto expect = [](std::int8_t weight, float bias, const std::string &reason) {
    const QuantizerPtr q = grid(0.01, 0);
    const Tensor w = quantize(Tensor(QTN_FLOAT32, {kDepth, 2}), q), b(QTN_FLOAT32, {2}), x(QTN_FLOAT32, {1, kDepth});
    std::fill_n(w.as<std::int8_t>(), w.count(), weight);
    std::fill_n(b.as<float>(), 2, bias);
    std::fill_n(x.as<float>(), kDepth, 2.55f);
    GraphBuilder gemm;
    gemm.input("x", {1, kDepth}).constant("w", w).constant("b", b).node("Gemm", "gemm", {"x", "w", "b"}, {"y"});
    const graph::Graph g = on_grids(gemm.build({"y"}), {{"x", grid(0.01, 0, QTN_UINT8)}, {"w", q}});
    expect_reason(g, IntegerForm::linear, reason);
    const double want = 2.55 * 0.01 * weight * kDepth + static_cast<double>(bias);  // a bias of 548 is all that is left
    const Tensor *inputs[] = {&x};
    for (const runtime::Engine engine : {runtime::Engine::native, runtime::Engine::reference}) {
      const Tensor y = runtime::Session(g, {.engine = engine}).run(inputs)[0];
      for (std::int64_t i = 0; i < y.count(); ++i)
        assert_float_equal(y.as<const float>()[i], want, 1e-5 * std::fabs(want));
    }
  };
  expect(120, 0, "");
  expect(127, 0, "a sum of 70000 products by its weights may be beyond int32");
  expect(-127, -100, "a sum of 70000 products by its weights may be beyond int32");
  expect(120, 500, "");
  expect(120, 600, "a sum of 70000 products by its weights may be beyond int32");
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(recurrent_layers), cmocka_unit_test(dynamic_products),
                              cmocka_unit_test(moved_elements),   cmocka_unit_test(elements),
                              cmocka_unit_test(biases),           cmocka_unit_test(biases_of_rows),
                              cmocka_unit_test(deep_sums)};
  return cmocka_run_group_tests_name("graph.float_reason", tests, nullptr, nullptr);
}
