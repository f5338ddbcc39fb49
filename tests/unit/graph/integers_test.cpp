// SPDX-License-Identifier: Apache-2.0
// What inference changes in quantized graphs: other weights for the same sums, rounding in another place, and the same
// bits.
#include "graph/evaluate.hpp"
#include "graph/passes/passes.hpp"
#include "graph/pipelines.hpp"
#include "quant/graph_builder.hpp"

namespace qtn::test {
namespace {

std::size_t count_of(const graph::Graph &g, std::string_view op) {
  return static_cast<std::size_t>(
      std::count_if(g.nodes.begin(), g.nodes.end(), [&](const graph::Node &node) { return node.op->name == op; }));
}

graph::Value &named(graph::Graph &g, const std::string &name) {
  for (graph::Value &value : g.values)
    if (value.name == name) return value;
  fail_test("no value ", name);
  std::abort();
}

QuantizerPtr grid(double scale, std::int64_t zero, qdtype dtype = QTN_UINT8) {
  return std::make_shared<Quantizer>(dtype, QTN_PER_TENSOR_AFFINE, 0, std::vector{scale}, std::vector{zero},
                                     Numerics::onnx);
}

graph::Graph expect_same_bits(const graph::Graph &g) {
  const Tensor x = GraphBuilder::ramp(*g.value(g.inputs[0]).shape);
  const Tensor want = graph::evaluate(g, std::vector<Tensor>{x})[0];
  graph::Graph changed = g;
  graph::run_passes(changed, graph::Pipeline::inference);
  const Tensor got = graph::evaluate(changed, std::vector<Tensor>{x})[0];
  assert_true(got.shape() == want.shape());
  assert_memory_equal(got.data(), want.data(), static_cast<std::size_t>(want.count()) * sizeof(float));
  return changed;
}

/// x [shape] on a grid times weights of every number that their type has.
graph::Graph product(const char *op, const Shape &x, const Shape &w, const QuantizerPtr &quantizer, const Attrs &a) {
  GraphBuilder b;
  Tensor integers(quantizer->dtype(), w);
  for (std::int64_t i = 0; i < integers.count(); ++i)
    integers.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * 255 / (integers.count() - 1));
  b.input("x", x).constant("w", integers.with_quantizer(quantizer)).node(op, "product", {"x", "w"}, {"y"}, a);
  graph::Graph g = b.build({"y"});
  named(g, "w").quantizer = quantizer;
  named(g, "x").quantizer = grid(0.02, 60);
  named(g, "y").quantizer = grid(0.5, 128);
  return g;
}

/// Int8 around 0, `parts` times as deep.
void expect_parts(const graph::Graph &g, std::int64_t parts) {
  const graph::Graph changed = expect_same_bits(g);
  const graph::Node &node = changed.nodes.back();
  const Tensor &was = g.value(g.nodes[0].inputs[1]).constant, &is = changed.value(node.inputs[1]).constant;
  assert_int_equal(is.dtype(), QTN_INT8);
  for (const std::int64_t zero : is.quantizer()->zero_points()) assert_int_equal(zero, 0);
  assert_int_equal(is.count(), was.count() * parts);
  assert_int_equal(count_of(changed, "Gather"), parts > 1 ? 1 : 0);
}

void weights_of_other_types(void **) {
  const Attrs transposed = attrs({{"transB", std::int64_t{1}}});
  for (const auto &[zero, parts] :
       {std::pair(128, 1), std::pair(127, 2), std::pair(100, 2), std::pair(0, 3), std::pair(255, 2)}) {
    const QuantizerPtr w = grid(0.01, zero);
    expect_parts(product("Conv", {1, 6, 5, 4}, {4, 6, 3, 3}, w, {}), parts);
    expect_parts(product("Conv", {2, 6, 5, 4}, {4, 3, 2, 2}, w, attrs({{"group", std::int64_t{2}}})), parts);
    expect_parts(product("Conv", {1, 6, 5, 4}, {6, 1, 3, 3}, w, attrs({{"group", std::int64_t{6}}})), parts);
    expect_parts(product("Gemm", {3, 7}, {7, 9}, w, {}), parts);
    expect_parts(product("Gemm", {3, 7}, {9, 7}, w, transposed), parts);
    expect_parts(product("MatMul", {2, 3, 7}, {7, 9}, w, {}), parts);
  }
  expect_parts(product("MatMul", {3, 7}, {7, 9}, grid(0.01, -5, QTN_INT8), {}), 2);
  const auto channels = std::make_shared<Quantizer>(QTN_UINT8, QTN_PER_CHANNEL_AFFINE, 1, std::vector{0.01, 0.02, 0.03},
                                                    std::vector<std::int64_t>{128, 3, 250}, Numerics::onnx);
  expect_parts(product("Gemm", {3, 7}, {7, 3}, channels, {}), 2);
}

void packed_weights(void **) {
  GraphBuilder b;
  const QuantizerPtr q = grid(0.1, 9, QTN_UINT4);
  b.input("x", {2, 8}).constant("w", quantize(GraphBuilder::ramp({8, 5}), q));
  b.node("MatMul", "product", {"x", "w"}, {"y"});
  graph::Graph g = b.build({"y"});
  named(g, "w").quantizer = q;
  named(g, "x").quantizer = grid(0.02, 60);
  const Tensor want = dequantize(named(g, "w").constant);
  graph::run_passes(g, graph::Pipeline::inference);
  const Tensor &w = g.value(g.nodes[0].inputs[1]).constant;
  assert_int_equal(w.dtype(), QTN_INT8);
  assert_memory_equal(dequantize(w).data(), want.data(), want.nbytes());
}

// A Transpose of weights on a grid is done once, and their scales turn with them.
void turned_weights(void **) {
  const auto channels =
      std::make_shared<Quantizer>(QTN_INT8, QTN_PER_CHANNEL_SYMMETRIC, 0, std::vector{0.01, 0.02, 0.03},
                                  std::vector<std::int64_t>(3, 0), Numerics::onnx);
  GraphBuilder b;
  b.input("x", {2, 8}).constant("w", quantize(GraphBuilder::ramp({3, 8}), channels));
  b.node("Transpose", "turn", {"w"}, {"t"}).node("MatMul", "product", {"x", "t"}, {"y"});
  graph::Graph g = b.build({"y"});
  named(g, "w").quantizer = channels;
  named(g, "x").quantizer = grid(0.02, 60);
  named(g, "y").quantizer = grid(0.05, 100);
  const graph::Graph changed = expect_same_bits(g);
  assert_int_equal(changed.nodes.size(), 1);
  assert_int_equal(changed.value(changed.nodes[0].inputs[1]).quantizer->axis(), 1);
}

// Weights beside float activations stay what they are.
void weights_alone(void **) {
  graph::Graph g = product("MatMul", {3, 7}, {7, 9}, grid(0.01, 100), {});
  named(g, "x").quantizer = nullptr;
  graph::run_passes(g, graph::Pipeline::inference);
  assert_int_equal(g.value(g.nodes[0].inputs[1]).constant.dtype(), QTN_UINT8);
}

graph::Graph pooled(bool read_twice) {
  GraphBuilder b;
  b.input("x", {1, 3, 6, 6}).node("Tanh", "tanh", {"x"}, {"t"});
  b.node("MaxPool", "pool", {"t"}, {"p"}, attrs({{"kernel_shape", Ints{2, 2}}}));
  b.node("Transpose", "turn", {"p"}, {"u"}, attrs({{"perm", Ints{0, 2, 3, 1}}}));
  b.node("Concat", "join", {"u", "u"}, {"c"}, attrs({{"axis", std::int64_t{3}}}));
  if (read_twice) b.node("Relu", "relu", {"t"}, {"r"});
  graph::Graph g = b.build(read_twice ? std::vector<std::string>{"c", "r"} : std::vector<std::string>{"c"});
  named(g, "u").quantizer = grid(0.02, 60);
  named(g, "c").quantizer = grid(0.02, 60);
  return g;
}

void rounding_before_moves(void **) {
  graph::Graph once = expect_same_bits(pooled(false));
  for (const char *name : {"t", "p", "u"})
    assert_true(named(once, name).quantizer && *named(once, name).quantizer == *grid(0.02, 60));
  graph::Graph twice = expect_same_bits(pooled(true));
  assert_true(named(twice, "p").quantizer != nullptr);
  assert_true(named(twice, "t").quantizer == nullptr);
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(weights_of_other_types), cmocka_unit_test(packed_weights),
                              cmocka_unit_test(turned_weights), cmocka_unit_test(weights_alone),
                              cmocka_unit_test(rounding_before_moves)};
  return cmocka_run_group_tests_name("graph.integers", tests, nullptr, nullptr);
}
