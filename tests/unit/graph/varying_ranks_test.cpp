// SPDX-License-Identifier: Apache-2.0
// Ranks that follow from lengths which inputs leave open are not known before a run, and passes leave alone what takes
// them: what a graph makes stays the same for every batch.
#include <algorithm>
#include <functional>

#include "graph/evaluate.hpp"
#include "graph/facts.hpp"
#include "graph/passes/passes.hpp"
#include "graph/passes/quantize_attention.hpp"
#include "graph/pipelines.hpp"
#include "ops/support.hpp"
#include "quant/graph_builder.hpp"

namespace qtn::test {
namespace {

Tensor list(const std::vector<std::int64_t> &values) { return Tensor::from_ints(values); }

std::int64_t rank_of(const graph::Graph &g, const std::string &name) {
  const auto found = std::ranges::find(g.values, name, &graph::Value::name);
  assert_true(found != g.values.end());
  return graph::Facts(g).rank[static_cast<std::size_t>(found - g.values.begin())];
}

GraphBuilder squeezed(const Shape &shape) {
  GraphBuilder b;
  b.input("x", shape).node("Squeeze", "squeeze", {"x"}, {"s"});
  return b;
}

void squeezes_without_axes(void **) {
  GraphBuilder b = squeezed({-1, 5, 8});
  b.constant("w", GraphBuilder::ramp({8, 4})).constant("rows", list({-1, 8})).constant("first", list({0}));
  b.node("MatMul", "product", {"s", "w"}, {"p"}).node("Reshape", "row", {"s", "rows"}, {"r"});
  b.node("Flatten", "flat", {"s"}, {"f"}).node("Squeeze", "one", {"x", "first"}, {"o"});
  b.node("Shape", "shape", {"s"}, {"dims"}).node("Reshape", "like", {"x", "dims"}, {"l"});
  graph::Graph g = b.build({"p", "r", "f", "o", "l"});
  for (graph::Value &value : g.values)
    if (value.name == "p") value.shape = Shape{5, 4};  // what an exporter saw
  for (const auto &[name, rank] :
       {std::pair("x", 3), {"s", -1}, {"p", -1}, {"r", 2}, {"f", 2}, {"o", 2}, {"dims", 1}, {"l", -1}})
    if (rank_of(g, name) != rank) fail_test(name, " has rank ", rank_of(g, name), ", not ", rank);
  assert_int_equal(rank_of(squeezed({1, 5, 8}).build({"s"}), "s"), 2);
  for (const Shape &open : {Shape{2, -1, 8}, Shape{-1, -1, -1}})
    assert_int_equal(rank_of(squeezed(open).build({"s"}), "s"), -1);
}

/// As exporters take one length of a shape.
void shapes_of_shapes(void **) {
  GraphBuilder b;
  b.input("x", {-1, 5, 8}).constant("first", list({0})).constant("rest", list({40}));
  b.node("Shape", "shape", {"x"}, {"dims"}).node("Gather", "gather", {"dims", "first"}, {"n"});
  b.node("Squeeze", "scalar", {"n"}, {"s"}).node("Unsqueeze", "again", {"s", "first"}, {"u"});
  b.node("Concat", "list", {"u", "rest"}, {"to"}, attrs({{"axis", std::int64_t{0}}}));
  b.node("Reshape", "flat", {"x", "to"}, {"y"});
  const graph::Graph g = b.build({"y"});
  assert_int_equal(rank_of(g, "s"), 0);
  assert_int_equal(rank_of(g, "y"), 2);
}

/// The last length of its indices says how many axes GatherND takes away.
void lengths_of_indices(void **) {
  GraphBuilder b;
  b.input("i", {-1}, QTN_INT64).constant("table", GraphBuilder::ramp({3, 4}));
  b.node("GatherND", "gather", {"table", "i"}, {"y"});
  assert_int_equal(rank_of(b.build({"y"}), "y"), -1);
}

/// Where no batch that is tried fits, the file's own word is all there is.
void batches_that_do_not_fit(void **) {
  GraphBuilder b;
  b.input("x", {-1, 8}).constant("clips", list({-1, 11, 8})).constant("w", GraphBuilder::ramp({8, 4}));
  b.node("MatMul", "before", {"x", "w"}, {"p"}).node("Reshape", "clip", {"x", "clips"}, {"c"});
  b.node("MatMul", "after", {"c", "w"}, {"y"}).node("Relu", "relu", {"y"}, {"z"});
  graph::Graph g = b.build({"p", "z"});
  for (graph::Value &value : g.values)
    if (value.name == "z") value.shape = Shape{-1, 11, 4};
  for (const auto &[name, rank] : {std::pair("p", 2), {"y", -1}, {"z", 3}})
    if (rank_of(g, name) != rank) fail_test(name, " has rank ", rank_of(g, name), ", not ", rank);
}

/// What both make of inputs of these shapes.
void expect_same(const graph::Graph &g, const graph::Graph &other, const std::vector<Shape> &shapes) {
  for (const Shape &shape : shapes) {
    const std::vector<Tensor> x{GraphBuilder::ramp(shape)};
    expect_equal(graph::evaluate(other, x)[0], graph::evaluate(g, x)[0], 1e-5, to_string(shape));
  }
}

void expect_to_stay(const std::function<void(graph::Graph &)> &pass, const graph::Graph &g,
                    const std::vector<Shape> &shapes) {
  graph::Graph other = g;
  pass(other);
  expect_same(g, other, shapes);
}

void products_behind_squeezes(void **) {
  GraphBuilder b = squeezed({-1, 5, 8});
  b.constant("w", GraphBuilder::ramp({8, 4})).constant("b", GraphBuilder::ramp({4}));
  b.node("MatMul", "product", {"s", "w"}, {"p"}).node("Add", "add", {"p", "b"}, {"y"});
  const graph::Graph g = b.build({"y"});
  expect_to_stay(graph::normalize_products, g, {{1, 5, 8}, {2, 5, 8}});

  GraphBuilder norm = squeezed({-1, 8, 8});
  norm.constant("w", GraphBuilder::ramp({8, 8})).constant("b", GraphBuilder::ramp({8}));
  norm.constant("var", Tensor::from<float>(QTN_FLOAT32, {8}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
  norm.node("MatMul", "product", {"s", "w"}, {"p"}).node("Add", "add", {"p", "b"}, {"a"});
  norm.node("BatchNormalization", "norm", {"a", "var", "b", "b", "var"}, {"y"});
  expect_to_stay(graph::fold_norms_of_columns, norm.build({"y"}), {{1, 8, 8}, {2, 8, 8}});
}

void numbers_behind_squeezes(void **) {
  const std::vector<Shape> shapes{{2, 3, 4, 5}, {2, 3, 1, 5}, {1, 1, 1, 5}};
  const auto one = [](float value) {
    return Tensor::from<float>(QTN_FLOAT32, {1, 1, 1, 1}, std::vector<float>{value});
  };
  GraphBuilder bound = squeezed({-1, -1, -1, -1});
  bound.constant("k", one(0.1f)).node("Max", "max", {"s", "k"}, {"y"});
  expect_to_stay(graph::make_clips_of_bounds, bound.build({"y"}), shapes);

  GraphBuilder gelu = squeezed({-1, -1, -1, -1});
  gelu.constant("root", Tensor::scalar(1.41421356f)).constant("one", one(1)).constant("half", Tensor::scalar(0.5f));
  gelu.node("Div", "div", {"s", "root"}, {"d"}).node("Erf", "erf", {"d"}, {"e"});
  gelu.node("Add", "add", {"e", "one"}, {"a"}).node("Mul", "mul", {"s", "a"}, {"m"});
  gelu.node("Mul", "scale", {"m", "half"}, {"y"});
  expect_to_stay([](graph::Graph &g) { graph::run_passes(g, graph::Pipeline::execution); }, gelu.build({"y"}), shapes);
}

/// An axis counted from the end is not the last one where it is not known how many there are.
void softmax_over_queries(void **) {
  for (const std::int64_t axis : {-1, -2}) {
    GraphBuilder b = squeezed({-1, 16, 8});
    for (const char *name : {"q", "k", "v"}) {
      const std::string n = name;
      b.constant("w" + n, GraphBuilder::ramp({8, 8})).node("MatMul", "of_" + n, {"s", "w" + n}, {n});
    }
    b.node("Transpose", "turn", {"k"}, {"t"}).node("MatMul", "scores", {"q", "t"}, {"c"});
    b.node("Softmax", "softmax", {"c"}, {"p"}, attrs({{"axis", axis}})).node("MatMul", "sums", {"p", "v"}, {"y"});
    graph::Graph g = b.build({"y"});
    graph::quantize_attention(g, [](const graph::Node &) { return graph::AttentionMode::dynamic; });
    assert_string_equal(g.nodes.back().op->name, axis == -1 ? "DynamicMatMul" : "MatMul");
  }
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(squeezes_without_axes),  cmocka_unit_test(shapes_of_shapes),
                              cmocka_unit_test(lengths_of_indices),     cmocka_unit_test(batches_that_do_not_fit),
                              cmocka_unit_test(softmax_over_queries),   cmocka_unit_test(products_behind_squeezes),
                              cmocka_unit_test(numbers_behind_squeezes)};
  return cmocka_run_group_tests_name("graph/varying_ranks", tests, nullptr, nullptr);
}
