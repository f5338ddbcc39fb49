// SPDX-License-Identifier: Apache-2.0
// Convolutions and products of integers that tools for dynamic quantization write: which become those of floats, with which sums.
#include "graph/evaluate.hpp"
#include "graph/passes/passes.hpp"
#include "quant/graph_builder.hpp"
#include "runtime/session.hpp"

namespace qtn::test {
namespace {

struct Form {
  qdtype weights = QTN_INT8;
  std::vector<std::int64_t> zeros = {};  ///< of weights: none, one, or one for each filter
  bool zero_of_x = true;
  std::int64_t to = QTN_FLOAT32;
  bool computed_weights = false;
  bool bias = false;  ///< in integers, as older tools write it
  std::vector<std::string> outputs = {"y"};
};

Tensor integers(qdtype dtype, const Shape &shape, std::int64_t step) {
  Tensor t(dtype, shape);
  for (std::int64_t i = 0; i < t.count(); ++i) t.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * step + 7);
  return t;
}

Tensor bias() {
  Tensor t(QTN_INT32, {1, 6, 1, 1});
  for (std::int32_t i = 0; i < 6; ++i) t.as<std::int32_t>()[i] = 1000 * i - 2500;
  return t;
}

void add_zeros(GraphBuilder &b, std::vector<std::string> &operands, qdtype dtype,
               const std::vector<std::int64_t> &zeros) {
  if (zeros.empty()) return;
  Tensor t(dtype, zeros.size() == 1 ? Shape{} : Shape{static_cast<std::int64_t>(zeros.size())});
  for (std::size_t i = 0; i < zeros.size(); ++i) t.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(zeros[i]);
  b.constant("zeros", t);
  operands.push_back("zeros");
}

/// x [2, 4, 7, 6] by 6 filters in two groups.
graph::Graph written(const Form &form) {
  GraphBuilder b;
  b.input("x", {2, 4, 7, 6}).constant("w", integers(form.weights, {6, 2, 3, 3}, 37));
  b.constant("scale", GraphBuilder::ramp({6, 1, 1}));
  b.node("DynamicQuantizeLinear", "quantize", {"x"}, {"q", "s", "z"});
  if (form.computed_weights) b.node("Identity", "same", {"w"}, {"v"});
  std::vector<std::string> operands{"q", form.computed_weights ? "v" : "w", form.zero_of_x ? "z" : ""};
  add_zeros(b, operands, form.weights, form.zeros);
  const std::vector<std::int64_t> pads{1, 0, 1, 2}, strides{1, 2};
  b.node("ConvInteger", "conv", operands, {"sums"},
         attrs({{"group", std::int64_t{2}}, {"pads", pads}, {"strides", strides}}));
  if (form.bias) b.constant("bias", bias()).node("Add", "biased", {"bias", "sums"}, {"sum"});
  b.node("Cast", "cast", {form.bias ? "sum" : "sums"}, {"r"}, attrs({{"to", form.to}}));
  if (form.to == QTN_FLOAT32)
    b.node("Mul", "scales", {"s", "scale"}, {"t"}).node("Mul", "mul", {"r", "t"}, {"y"});
  else
    b.node("Identity", "end", {"r"}, {"y"});
  return b.build(form.outputs);
}

std::size_t count(const graph::Graph &g, std::string_view op) {
  return static_cast<std::size_t>(
      std::ranges::count_if(g.nodes, [&](const graph::Node &node) { return node.op->name == op; }));
}

/// Whether the layer computes in floats, and that its sums are exact in either type.
void expect(const graph::Graph &g, std::string_view layer, bool in_float, const std::vector<Tensor> &inputs) {
  graph::Graph other = g;
  graph::sum_integers_in_float(other);
  assert_int_equal(count(other, layer), in_float);
  assert_int_equal(count(other, cat(layer, "Integer")), !in_float);
  std::vector<const Tensor *> operands;
  for (const Tensor &x : inputs) operands.push_back(&x);
  const std::vector<Tensor> want = graph::evaluate(g, inputs), got = graph::evaluate(other, inputs),
                            run = runtime::Session(g, {}).run(operands);
  for (std::size_t o = 0; o < want.size(); ++o) {
    assert_true(equal(want[o], got[o]));
    assert_true(equal(want[o], run[o]));
  }
}

void expect(const Form &form, bool in_float) {
  expect(written(form), "Conv", in_float, {GraphBuilder::ramp({2, 4, 7, 6})});
}

void test_weights(void **) {
  expect({}, true);
  expect({.zeros = {3}}, true);
  expect({.weights = QTN_UINT8, .zeros = {128}}, true);
  expect({.weights = QTN_UINT8, .zeros = {128, 127, 0, 255, 1, 90}}, true);
  expect({.zero_of_x = false}, true);
  expect({.zeros = {3}, .zero_of_x = false}, true);
  expect({.zeros = {3}, .bias = true}, true);
}

void test_what_stays(void **) {
  expect({.outputs = {"y", "sums"}}, false);
  expect({.bias = true, .outputs = {"y", "sum"}}, false);
  expect({.to = QTN_INT64}, false);
  expect({.computed_weights = true}, false);
}

/// Two layers that read one image center it once.
void test_shared_images(void **) {
  GraphBuilder b;
  b.input("x", {1, 2, 5, 5}).constant("v", integers(QTN_INT8, {3, 2, 1, 1}, 11));
  b.constant("w", integers(QTN_INT8, {3, 2, 1, 1}, 29)).node("DynamicQuantizeLinear", "q", {"x"}, {"q", "s", "z"});
  for (const char *layer : {"v", "w"}) {
    const std::string name = layer;
    b.node("ConvInteger", "conv_" + name, {"q", name, "z"}, {"sums_" + name});
    b.node("Cast", "cast_" + name, {"sums_" + name}, {"r_" + name}, attrs({{"to", std::int64_t{QTN_FLOAT32}}}));
  }
  b.node("Add", "add", {"r_v", "r_w"}, {"y"});
  graph::Graph g = b.build({"y"});
  graph::sum_integers_in_float(g);
  assert_int_equal(count(g, "DequantizeLinear"), 1);
  assert_int_equal(count(g, "Conv"), 2);
}

struct Product {
  bool by_constant = false;
  std::vector<std::int64_t> zeros = {};  ///< of the right operand: none, one, or one for each column; -1: computed
  std::int64_t to = QTN_FLOAT32;
};

/// x [2, 5, 40] by [2, 40, 6], or by a constant [40, 6].
graph::Graph written(const Product &form) {
  GraphBuilder b;
  b.input("x", {2, 5, 40});
  b.node("DynamicQuantizeLinear", "quantize", {"x"}, {"q", "s", "z"});
  std::vector<std::string> operands{"q", "w", "z"};
  if (form.by_constant)
    b.constant("w", integers(QTN_INT8, {40, 6}, 37));
  else
    b.input("v", {2, 40, 6}).node("DynamicQuantizeLinear", "quantize_v", {"v"}, {"w", "t", "found"});
  if (form.zeros == std::vector<std::int64_t>{-1})
    operands.push_back("found");
  else
    add_zeros(b, operands, form.by_constant ? QTN_INT8 : QTN_UINT8, form.zeros);
  b.node("MatMulInteger", "product", operands, {"sums"});
  return b.node("Cast", "cast", {"sums"}, {"y"}, attrs({{"to", form.to}})).build({"y"});
}

void expect(const Product &form, bool in_float) {
  std::vector<Tensor> inputs{GraphBuilder::ramp({2, 5, 40})};
  if (!form.by_constant) inputs.push_back(GraphBuilder::ramp({2, 40, 6}));
  expect(written(form), "MatMul", in_float, inputs);
}

void test_products(void **) {
  expect(Product{}, true);
  expect(Product{.zeros = {-1}}, true);
  expect(Product{.zeros = {3}}, true);
  expect(Product{.zeros = {3, 0, 9, 255, 128, 1}}, false);
  expect(Product{.by_constant = true}, true);
  expect(Product{.by_constant = true, .zeros = {5}}, true);
  expect(Product{.by_constant = true, .zeros = {3, 0, 9, 255, 128, 1}}, false);
  expect(Product{.zeros = {-1}, .to = QTN_INT64}, false);
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_weights), cmocka_unit_test(test_what_stays),
                              cmocka_unit_test(test_shared_images), cmocka_unit_test(test_products)};
  return cmocka_run_group_tests_name("graph/sum_integers", tests, nullptr, nullptr);
}
