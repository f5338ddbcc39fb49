// SPDX-License-Identifier: Apache-2.0
// What inference changes in quantized graphs: other weights for the same sums, rounding in another place, and the same
// bits.
#include <algorithm>
#include <numeric>

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

/// How many int8 add up to a number.
std::int64_t parts_of(std::int64_t value) {
  return value > 0 ? (value + 126) / 127 : std::max<std::int64_t>(1, (127 - value) / 128);
}

/// Int8 around 0, with so many places along the axis, for which x is repeated by this operator.
void expect_places(const graph::Graph &g, std::size_t axis, std::int64_t places, const char *repeat) {
  const graph::Graph changed = expect_same_bits(g);
  const graph::Node &node = changed.nodes.back();
  const Tensor &was = g.value(g.nodes[0].inputs[1]).constant, &is = changed.value(node.inputs[1]).constant;
  assert_int_equal(is.dtype(), QTN_INT8);
  for (const std::int64_t zero : is.quantizer()->zero_points()) assert_int_equal(zero, 0);
  Shape shape = was.shape();
  shape[axis] = places;
  assert_true(is.shape() == shape);
  assert_int_equal(changed.nodes.size(), places == was.dim(axis) ? 1 : 2);
  if (places != was.dim(axis)) assert_int_equal(count_of(changed, repeat), 1);
}

/// How many parts the weights at each place along the axis have.
std::vector<std::int64_t> parts_along(const graph::Graph &g, std::size_t axis) {
  const Tensor &w = g.value(g.nodes[0].inputs[1]).constant;
  const Quantizer &q = *w.quantizer();
  std::vector<std::int64_t> parts;
  for (std::int64_t i = 0; i < w.dim(axis); ++i) {
    const Tensor part = w.with_quantizer(nullptr).slice(axis, i, i + 1, 1).to_contiguous();
    const std::vector<std::int64_t> values = int_values(part, "weight");
    std::int64_t most = 1;
    for (std::size_t k = 0; k < values.size(); ++k)
      most = std::max(most, parts_of(values[k] - q.zero_points()[k % q.zero_points().size()]));
    parts.push_back(most);
  }
  return parts;
}

std::int64_t sum(const std::vector<std::int64_t> &v) { return std::accumulate(v.begin(), v.end(), std::int64_t{0}); }
std::int64_t largest(const std::vector<std::int64_t> &v) { return *std::max_element(v.begin(), v.end()); }

/// Whole dwords stay such.
void expect_channels(const graph::Graph &g, std::size_t axis) {
  const std::vector<std::int64_t> parts = parts_along(g, axis);
  const bool are_dwords = parts.size() % 4 == 0;
  expect_places(g, axis, are_dwords ? (sum(parts) + 3) / 4 * 4 : sum(parts), "Gather");
}

void weights_of_other_types(void **) {
  const Attrs transposed = attrs({{"transB", std::int64_t{1}}}), groups = attrs({{"group", std::int64_t{2}}});
  for (const std::int64_t zero : {128, 127, 100, 0, 255}) {
    const QuantizerPtr w = grid(0.01, zero);
    expect_channels(product("Conv", {1, 6, 5, 4}, {4, 6, 3, 3}, w, {}), 1);
    expect_channels(product("Conv", {1, 8, 5, 4}, {4, 8, 3, 3}, w, {}), 1);
    expect_channels(product("Gemm", {3, 7}, {7, 9}, w, {}), 0);
    expect_channels(product("Gemm", {3, 7}, {9, 7}, w, transposed), 1);
    expect_channels(product("MatMul", {2, 3, 7}, {7, 9}, w, {}), 0);
    const graph::Graph grouped = product("Conv", {2, 6, 5, 4}, {4, 3, 2, 2}, w, groups);
    expect_places(grouped, 1, 3 * largest(parts_along(grouped, 1)), "Gather");
  }
  expect_channels(product("MatMul", {3, 7}, {7, 9}, grid(0.01, -5, QTN_INT8), {}), 0);
  const auto channels = std::make_shared<Quantizer>(QTN_UINT8, QTN_PER_CHANNEL_AFFINE, 1, std::vector{0.01, 0.02, 0.03},
                                                    std::vector<std::int64_t>{128, 3, 250}, Numerics::onnx);
  expect_channels(product("Gemm", {3, 7}, {7, 3}, channels, {}), 0);
}

/// Depthwise convolutions stay what they are, over images with each row several times.
void depthwise_weights_of_other_types(void **) {
  using Ints = std::vector<std::int64_t>;
  constexpr std::int64_t kGroups = 6;
  for (const std::int64_t zero : {128, 127, 100, 0, 255}) {
    const QuantizerPtr w = grid(0.01, zero);
    for (const Attrs &a :
         {attrs({{"group", kGroups}}), attrs({{"group", kGroups}, {"strides", Ints{2, 1}}, {"pads", Ints{2, 0, 1, 1}}}),
          attrs({{"group", kGroups}, {"auto_pad", std::string("VALID")}, {"kernel_shape", Ints{3, 2}}})}) {
      const graph::Graph g = product("Conv", {1, 6, 7, 4}, {6, 1, 3, 2}, w, a);
      expect_places(g, 2, 3 * largest(parts_along(g, 2)), "Resize");
    }
    const graph::Graph line = product("Conv", {1, 6, 9}, {12, 1, 3}, w, attrs({{"group", kGroups}}));
    expect_places(line, 2, 3 * largest(parts_along(line, 2)), "Resize");
    // Rows that follow one another in these windows do not do so in the image.
    for (const Attrs &a : {attrs({{"group", kGroups}, {"dilations", Ints{2, 1}}}),
                           attrs({{"group", kGroups}, {"auto_pad", std::string("SAME_UPPER")}})}) {
      const graph::Graph g = product("Conv", {1, 6, 7, 4}, {6, 1, 3, 2}, w, a);
      expect_places(g, 1, largest(parts_along(g, 1)), "Gather");
    }
  }
}

/// What two products need of x is repeated once.
void products_of_one_operand(void **) {
  GraphBuilder b;
  b.input("x", {3, 8});
  for (const std::string name : {"a", "b"}) {
    Tensor integers(QTN_UINT8, {8, 4});
    for (std::int64_t i = 0; i < integers.count(); ++i) integers.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(i);
    integers.as<std::uint8_t>()[name == "a" ? 5 : 30] = 255;  // of rows 1 and 7
    b.constant(name, integers.with_quantizer(grid(0.01, 100))).node("MatMul", "of " + name, {"x", name}, {name + "y"});
  }
  b.node("Add", "sum", {"ay", "by"}, {"y"});
  graph::Graph g = b.build({"y"});
  for (const char *name : {"a", "b"}) named(g, name).quantizer = grid(0.01, 100);
  named(g, "x").quantizer = grid(0.02, 60);
  const graph::Graph changed = expect_same_bits(g);
  assert_int_equal(count_of(changed, "Gather"), 1);
  for (const graph::Node &node : changed.nodes)
    if (node.op == &ops::kMatMul) assert_int_equal(changed.value(node.inputs[1]).constant.dim(0), 10);
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
  const CMUnitTest tests[] = {
      cmocka_unit_test(weights_of_other_types),  cmocka_unit_test(depthwise_weights_of_other_types),
      cmocka_unit_test(products_of_one_operand), cmocka_unit_test(packed_weights),
      cmocka_unit_test(turned_weights),          cmocka_unit_test(weights_alone),
      cmocka_unit_test(rounding_before_moves)};
  return cmocka_run_group_tests_name("graph.integers", tests, nullptr, nullptr);
}
