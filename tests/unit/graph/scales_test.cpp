// SPDX-License-Identifier: Apache-2.0
// Constants behind a layer that become part of its weights: which, and that the numbers stay.
#include <cmath>

#include "graph/evaluate.hpp"
#include "graph/passes/passes.hpp"
#include "quant/graph_builder.hpp"

namespace qtn::test {
namespace {

Tensor channels(std::int64_t count, const Shape &shape) {
  const Tensor t = GraphBuilder::ramp({count});
  for (std::int64_t i = 0; i < count; ++i) t.as<float>()[i] += 2;
  return t.reshaped(shape);
}

void expect(GraphBuilder &b, const Shape &x_shape, std::size_t nodes_left,
            const std::vector<std::string> &outputs = {"y"}) {
  const graph::Graph g = b.build(outputs);
  graph::Graph folded = g;
  graph::fold_scales(folded);
  assert_int_equal(folded.nodes.size(), nodes_left);
  const Tensor x = GraphBuilder::ramp(x_shape);
  const Tensor want = graph::evaluate(g, std::vector<Tensor>{x})[0];
  const Tensor got = graph::evaluate(folded, std::vector<Tensor>{x})[0];
  assert_true(got.shape() == want.shape());
  for (std::int64_t i = 0; i < want.count(); ++i)
    assert_true(std::fabs(got.as<float>()[i] - want.as<float>()[i]) <= 2e-6f * (1 + std::fabs(want.as<float>()[i])));
}

const Shape kImage{2, 4, 5, 5};

GraphBuilder layer() {
  GraphBuilder b;
  b.input("x", kImage).conv("conv", "x", "u", 4, 6);
  return b;
}

void test_numbers(void **) {
  GraphBuilder scaled = layer();
  scaled.constant("a", channels(1, {1})).constant("b", channels(1, {})).constant("c", channels(1, {1, 1, 1}));
  scaled.node("Mul", "mul", {"a", "u"}, {"v"})
      .node("Add", "add", {"v", "b"}, {"w"})
      .node("Div", "div", {"w", "c"}, {"y"});
  expect(scaled, kImage, 1);

  GraphBuilder taken = layer();
  taken.constant("a", channels(1, {}));
  taken.node("Sub", "from", {"a", "u"}, {"v"}).node("Sub", "of", {"v", "a"}, {"y"});
  expect(taken, kImage, 1);
}

void test_channels(void **) {
  GraphBuilder b = layer();
  b.constant("a", channels(6, {6, 1, 1})).constant("b", channels(6, {1, 6, 1, 1}));
  b.node("Mul", "mul", {"u", "a"}, {"v"}).node("Add", "add", {"b", "v"}, {"y"});
  expect(b, kImage, 1);

  GraphBuilder grouped;
  grouped.input("x", kImage).constant("w", GraphBuilder::ramp({4, 3, 2, 2})).constant("a", channels(6, {6, 1, 1}));
  grouped.node("ConvTranspose", "up", {"x", "w"}, {"u"}, attrs({{"group", std::int64_t{2}}}));
  grouped.node("Mul", "mul", {"u", "a"}, {"y"});
  expect(grouped, kImage, 1);

  GraphBuilder gemm;
  gemm.input("x", {3, 4}).constant("w", GraphBuilder::ramp({4, 6})).constant("a", channels(6, {6}));
  gemm.node("Gemm", "gemm", {"x", "w"}, {"u"})
      .node("Mul", "mul", {"u", "a"}, {"v"})
      .node("Add", "add", {"v", "a"}, {"y"});
  expect(gemm, {3, 4}, 1);
}

/// Places are no channels; a stretched result, a divided constant, a zero below, and what others read stay.
void test_what_stays(void **) {
  const auto with = [](const Tensor &constant, const char *op, bool first) {
    GraphBuilder b = layer();
    b.constant("a", constant);
    b.node(op, "node", first ? std::vector<std::string>{"a", "u"} : std::vector<std::string>{"u", "a"}, {"y"});
    return b;
  };
  GraphBuilder places = with(channels(5, {5}), "Mul", false), more = with(channels(1, {1, 1, 1, 1, 1}), "Add", false),
               batch = with(channels(2, {2, 1, 1, 1}), "Mul", false), below = with(channels(1, {}), "Div", true),
               infinite = with(Tensor::scalar(INFINITY), "Add", false);
  GraphBuilder large;  // weights of 3 times as much would be beyond float32
  large.input("x", kImage).constant("w", channels(24, {6, 4, 1, 1})).node("Conv", "conv", {"x", "w"}, {"u"});
  large.constant("a", Tensor::scalar(2e38f)).node("Mul", "node", {"u", "a"}, {"y"});
  for (GraphBuilder *b : {&places, &more, &batch, &below}) expect(*b, kImage, 2);
  for (GraphBuilder *b : {&infinite, &large}) {
    graph::Graph g = b->build({"y"});
    graph::fold_scales(g);
    assert_int_equal(g.nodes.size(), 2);
  }

  GraphBuilder read_twice = layer();
  read_twice.constant("a", channels(1, {})).node("Mul", "mul", {"u", "a"}, {"y"});
  expect(read_twice, kImage, 2, {"y", "u"});

  GraphBuilder ruled = layer();
  ruled.constant("a", channels(1, {})).node("Mul", "mul", {"u", "a"}, {"y"});
  graph::Graph kept = ruled.build({"y"});
  graph::fold_scales(kept, [](const graph::Node &node) { return node.name != "mul"; });
  assert_int_equal(kept.nodes.size(), 2);
}

/// A Gemm adds what broadcasts over its result, so that as many numbers as it has columns may be one for each row.
void test_biases_of_rows(void **) {
  const auto gemm = [](const Shape &bias) {
    GraphBuilder b;
    b.input("x", {4, 3}).constant("w", GraphBuilder::ramp({3, 4})).constant("c", channels(4, bias));
    b.constant("a", channels(4, {4})).node("Gemm", "gemm", {"x", "w", "c"}, {"u"});
    return b;
  };
  GraphBuilder rows = gemm({4, 1}), columns = gemm({1, 4});
  expect(rows.node("Mul", "mul", {"u", "a"}, {"y"}), {4, 3}, 2);
  expect(columns.node("Mul", "mul", {"u", "a"}, {"y"}), {4, 3}, 1);
  GraphBuilder normalized = gemm({4, 1});
  normalized.constant("s", GraphBuilder::ramp({4}));
  graph::Graph g = normalized.node("BatchNormalization", "norm", {"u", "a", "s", "s", "a"}, {"y"}).build({"y"});
  graph::fold_batch_norms(g);
  assert_int_equal(g.nodes.size(), 2);
}

/// Only what leads to a normalization, and to nothing else.
void test_scales_before_norms(void **) {
  const auto normalized = [](const std::vector<std::string> &outputs) {
    GraphBuilder b = layer();
    b.constant("a", channels(6, {6, 1, 1})).constant("s", channels(6, {6})).constant("m", GraphBuilder::ramp({6}));
    b.node("Mul", "mul", {"u", "a"}, {"v"}).node("Add", "add", {"v", "a"}, {"w"});
    b.node("BatchNormalization", "norm", {"w", "s", "m", "m", "s"}, {"n"}).node("Add", "after", {"n", "a"}, {"y"});
    return b.build(outputs);
  };
  const auto left = [](graph::Graph g) {
    graph::fold_scales_before_norms(g);
    return g.nodes.size();
  };
  const graph::Graph g = normalized({"y"});
  assert_int_equal(left(g), 3);
  assert_int_equal(left(normalized({"y", "w"})), 5);  // read otherwise, too
  graph::Graph folded = g;
  graph::fold_scales_before_norms(folded);
  graph::fold_preceded_batch_norms(folded);
  assert_int_equal(folded.nodes.size(), 2);
  const std::vector<Tensor> x{GraphBuilder::ramp(kImage)};
  const Tensor want = graph::evaluate(g, x)[0], got = graph::evaluate(folded, x)[0];
  for (std::int64_t i = 0; i < want.count(); ++i)
    assert_true(std::fabs(got.as<float>()[i] - want.as<float>()[i]) <= 1e-5f * (1 + std::fabs(want.as<float>()[i])));
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_channels),
                              cmocka_unit_test(test_what_stays), cmocka_unit_test(test_biases_of_rows),
                              cmocka_unit_test(test_scales_before_norms)};
  return cmocka_run_group_tests_name("scales", tests, nullptr, nullptr);
}
