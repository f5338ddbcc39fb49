// SPDX-License-Identifier: Apache-2.0
// What follows a Transpose or a Squeeze of an image computes on the image itself: which nodes do, how many nodes that
// move elements are left, and that the numbers stay.
#include <cmath>

#include "core/quantizer.hpp"
#include "graph/evaluate.hpp"
#include "graph/passes/passes.hpp"
#include "graph/pipelines.hpp"
#include "quant/graph_builder.hpp"

namespace qtn::test {
namespace {

using Ops = std::vector<std::string>;

const Shape kImage{2, 4, 6, 5};
const std::vector<std::int64_t> kLast{0, 2, 3, 1}, kFirst{0, 3, 1, 2};

Tensor list(const std::vector<std::int64_t> &values) {
  return Tensor::from<std::int64_t>(QTN_INT64, Shape{static_cast<std::int64_t>(values.size())},
                                    std::span<const std::int64_t>(values));
}

Attrs perm(const std::vector<std::int64_t> &axes) { return attrs({{"perm", axes}}); }

/// "u" has channels last, six of them.
GraphBuilder layer() {
  GraphBuilder b;
  b.input("x", kImage).conv("conv", "x", "c", 4, 6).node("Transpose", "last", {"c"}, {"u"}, perm(kLast));
  return b;
}

/// The operators that are left, in order. What is computed is what was computed.
void expect_ops(GraphBuilder &b, const Ops &want, const std::vector<std::string> &outputs = {"y"},
                const Shape &x_shape = kImage) {
  const graph::Graph g = b.build(outputs);
  graph::Graph made = g;
  graph::keep_channels_first(made);
  Ops got;
  for (const graph::Node &node : made.nodes) got.push_back(node.op->name);
  const auto joined = [](const Ops &ops) {
    std::string text;
    for (const std::string &op : ops) text += " " + op;
    return text;
  };
  if (got != want) fail_test("got", joined(got), "; want", joined(want));
  const std::vector<Tensor> x{GraphBuilder::ramp(x_shape)};
  const std::vector<Tensor> before = graph::evaluate(g, x), after = graph::evaluate(made, x);
  for (std::size_t i = 0; i < before.size(); ++i) {
    assert_true(after[i].shape() == before[i].shape());
    assert_string_equal(made.value(made.outputs[i]).name.c_str(), outputs[i].c_str());
    for (std::int64_t j = 0; j < before[i].count(); ++j)
      assert_true(std::fabs(after[i].as<float>()[j] - before[i].as<float>()[j]) <= 1e-5f);
  }
}

void test_pairs(void **) {
  GraphBuilder b = layer();
  b.node("Transpose", "first", {"u"}, {"v"}, perm(kFirst)).conv("next", "v", "y", 6, 3);
  expect_ops(b, {"Conv", "Conv"});

  GraphBuilder computed = layer();
  computed.constant("a", GraphBuilder::ramp({6})).constant("b", GraphBuilder::ramp({1, 1, 1, 6}));
  computed.node("Mul", "mul", {"u", "a"}, {"v"})
      .node("Add", "add", {"b", "v"}, {"w"})
      .node("Relu", "relu", {"w"}, {"r"});
  computed.node("Add", "sum", {"r", "u"}, {"s"}).node("Transpose", "first", {"s"}, {"t"}, perm(kFirst));
  computed.conv("next", "t", "y", 6, 3);
  expect_ops(computed, {"Conv", "Mul", "Add", "Relu", "Add", "Conv"});

  GraphBuilder output = layer();
  output.node("Transpose", "first", {"u"}, {"y"}, perm(kFirst));
  expect_ops(output, {"Conv"});
}

/// The bias meets its layer, and an output is what it was.
void test_one_transpose(void **) {
  GraphBuilder b = layer();
  b.constant("a", GraphBuilder::ramp({6})).node("Add", "add", {"u", "a"}, {"y"});
  expect_ops(b, {"Conv", "Add", "Transpose"});

  GraphBuilder places = layer();
  places.constant("a", GraphBuilder::ramp({6, 5, 1})).constant("n", Tensor::scalar(0.5f));
  places.node("Mul", "mul", {"u", "a"}, {"v"}).node("Max", "max", {"v", "n"}, {"y"});
  expect_ops(places, {"Conv", "Mul", "Max", "Transpose"});

  GraphBuilder twice = layer();
  twice.node("Relu", "relu", {"u"}, {"y"});
  expect_ops(twice, {"Conv", "Transpose", "Relu"}, {"y", "u"});
}

void test_moves(void **) {
  GraphBuilder b = layer();
  b.constant("pads", list({0, 1, 0, 0, 0, 0, 2, 0})).constant("parts", list({2, 4}));
  b.constant("starts", list({1, 1})).constant("ends", list({6, 100})).constant("axes", list({-2, 1}));
  b.node("Pad", "pad", {"u", "pads"}, {"p"}).node("Slice", "slice", {"p", "starts", "ends", "axes"}, {"s"});
  b.node("Split", "split", {"s", "parts"}, {"one", "two"}, attrs({{"axis", std::int64_t{-1}}}));
  b.node("Concat", "concat", {"two", "one", "two"}, {"t"}, attrs({{"axis", std::int64_t{3}}}));
  b.node("Slice", "more", {"t", "starts", "ends"}, {"m"}).node("Transpose", "first", {"m"}, {"y"}, perm(kFirst));
  expect_ops(b, {"Conv", "Pad", "Slice", "Split", "Concat", "Slice"});
}

void test_means(void **) {
  GraphBuilder b = layer();
  b.constant("axes", list({1, 2}));
  b.node("ReduceMean", "mean", {"u", "axes"}, {"y"}, attrs({{"keepdims", std::int64_t{0}}}));
  expect_ops(b, {"Conv", "ReduceMean"});

  GraphBuilder kept = layer();
  kept.constant("axes", list({-2, -3}));
  kept.node("ReduceMax", "max", {"u", "axes"}, {"m"}).node("Mul", "mul", {"u", "m"}, {"s"});
  kept.node("Transpose", "first", {"s"}, {"y"}, perm(kFirst));
  expect_ops(kept, {"Conv", "ReduceMax", "Mul"});

  GraphBuilder features = layer();  // as a normalization of each place takes it
  features.constant("axes", list({3}));
  features.node("ReduceMean", "mean", {"u", "axes"}, {"m"}).node("Sub", "sub", {"u", "m"}, {"y"});
  expect_ops(features, {"Conv", "Transpose", "ReduceMean", "Sub"});
}

/// A list of no axes, which are all of them, or by request none.
void test_no_axes(void **) {
  for (const std::int64_t none : {0, 1})
    for (const std::int64_t keeps : {0, 1}) {
      GraphBuilder b;
      b.input("x", kImage).conv("conv", "x", "c", 4, 6).node("GlobalAveragePool", "pool", {"c"}, {"p"});
      b.constant("three", list({3})).constant("two", list({2})).constant("axes", list({}));
      b.node("Squeeze", "columns", {"p", "three"}, {"r"}).node("Squeeze", "rows", {"r", "two"}, {"u"});
      b.node("ReduceSum", "sum", {"u", "axes"}, {"y"}, attrs({{"keepdims", keeps}, {"noop_with_empty_axes", none}}));
      expect_ops(b, {"Conv", "GlobalAveragePool", "Squeeze", "ReduceSum"});
    }
}

/// Rows: an image of one row, squeezed, and read as one again.
void test_rows(void **) {
  const Shape row{2, 4, 1, 7};
  const auto rows = [&](std::int64_t axis) {
    GraphBuilder b;
    b.input("x", row).conv("conv", "x", "c", 4, 6).constant("axis", list({axis}));
    b.constant("a", GraphBuilder::ramp({6, 1})).constant("places", list({2}));
    b.node("Squeeze", "squeeze", {"c", "axis"}, {"u"}).node("Mul", "mul", {"u", "a"}, {"v"});
    return b;
  };
  GraphBuilder b = rows(2);
  b.node("Unsqueeze", "row", {"v", "axis"}, {"w"}).conv("next", "w", "y", 6, 3);
  expect_ops(b, {"Conv", "Mul", "Conv"}, {"y"}, row);

  GraphBuilder mean = rows(-2);
  mean.node("ReduceMean", "mean", {"v", "places"}, {"y"}, attrs({{"keepdims", std::int64_t{0}}}));
  expect_ops(mean, {"Conv", "Mul", "ReduceMean"}, {"y"}, row);

  GraphBuilder turned = rows(2);
  turned.node("Transpose", "last", {"v"}, {"w"}, perm({0, 2, 1})).constant("b", GraphBuilder::ramp({6}));
  turned.node("Add", "add", {"w", "b"}, {"y"});
  expect_ops(turned, {"Conv", "Mul", "Add", "Squeeze", "Transpose"}, {"y"}, row);

  GraphBuilder deeper = rows(2);  // an axis that the image does not have
  deeper.constant("two", list({1, 2})).node("Unsqueeze", "row", {"v", "two"}, {"y"});
  expect_ops(deeper, {"Conv", "Mul", "Squeeze", "Unsqueeze"}, {"y"}, row);
}

/// Heads of attention, other layouts, constants of more axes, and operands that are no views of images.
void test_what_stays(void **) {
  GraphBuilder heads;
  heads.input("x", kImage).node("Transpose", "turn", {"x"}, {"u"}, perm(kLast)).node("Relu", "relu", {"u"}, {"v"});
  heads.node("Transpose", "back", {"v"}, {"y"}, perm(kFirst));
  expect_ops(heads, {"Transpose", "Relu", "Transpose"});

  GraphBuilder more = layer();
  more.constant("a", GraphBuilder::ramp({1, 1, 1, 1, 6})).node("Add", "add", {"u", "a"}, {"y"});
  expect_ops(more, {"Conv", "Transpose", "Add"});

  GraphBuilder other = layer();
  other.input("z", {2, 6, 5, 6}).node("Add", "add", {"u", "z"}, {"y"});
  const graph::Graph g = other.build({"y"});
  graph::Graph kept = g;
  graph::keep_channels_first(kept);
  assert_int_equal(kept.nodes.size(), g.nodes.size());
}

/// Integers have one grid on both sides of what moves them; another grid is a step of its own.
void test_grids(void **) {
  const auto nodes_with = [](double other) {
    GraphBuilder b = layer();
    b.node("Relu", "relu", {"u"}, {"r"}).node("Transpose", "first", {"r"}, {"y"}, perm(kFirst));
    b.conv("next", "y", "z", 6, 3);
    graph::Graph g = b.build({"z"});
    const auto grid = [](double scale) {
      return std::make_shared<Quantizer>(QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, std::vector<double>{scale},
                                         std::vector<std::int64_t>{128}, Numerics::onnx);
    };
    for (graph::Value &value : g.values)
      if (value.name == "c" || value.name == "u")
        value.quantizer = grid(value.name == "c" ? other : 0.02);
      else if (value.name == "r" || value.name == "y")
        value.quantizer = grid(0.01);
    const Tensor x = GraphBuilder::ramp(kImage);
    const Tensor want = graph::evaluate(g, std::vector<Tensor>{x})[0];
    graph::keep_channels_first(g);
    const Tensor got = graph::evaluate(g, std::vector<Tensor>{x})[0];
    for (std::int64_t i = 0; i < want.count(); ++i) assert_true(got.as<float>()[i] == want.as<float>()[i]);
    return g.nodes.size();
  };
  assert_int_equal(nodes_with(0.02), 3);
  assert_int_equal(nodes_with(0.03), 5);
}

/// What a network with channels last becomes is what the same network with channels first becomes.
void test_quantized(void **) {
  GraphBuilder b = layer();
  b.constant("a", GraphBuilder::ramp({6})).constant("axes", list({1, 2})).constant("w", GraphBuilder::ramp({6, 3}));
  b.node("Add", "add", {"u", "a"}, {"v"}).node("Relu", "relu", {"v"}, {"r"});
  b.node("ReduceMean", "mean", {"r", "axes"}, {"m"}, attrs({{"keepdims", std::int64_t{0}}}));
  b.node("MatMul", "head", {"m", "w"}, {"y"});
  const quant::PreparedModel p = quant::prepare(b.build({"y"}), quant::Config("onnx"));
  expect_names(integer_nodes(p), {"conv", "mean", "head"});
  expect_names(quantized_values(p), {"x", "r", "m"});
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_pairs),      cmocka_unit_test(test_one_transpose), cmocka_unit_test(test_moves),
      cmocka_unit_test(test_means),      cmocka_unit_test(test_no_axes),       cmocka_unit_test(test_rows),
      cmocka_unit_test(test_what_stays), cmocka_unit_test(test_grids),         cmocka_unit_test(test_quantized)};
  return cmocka_run_group_tests_name("channels_first", tests, nullptr, nullptr);
}
