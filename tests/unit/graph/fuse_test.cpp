// SPDX-License-Identifier: Apache-2.0
// What inference takes out of a graph, and that the numbers stay: ours without the pass, exactly.
#include <cmath>

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

Tensor int64s(const Ints &values) { return Tensor::from_ints(values); }

/// x [1][2][5][6] and a Pad with these inputs.
GraphBuilder with_pad(const Ints &pads, const Tensor &value, const Attrs &pad_attrs) {
  GraphBuilder b;
  b.input("x", {1, 2, 5, 6}).constant("pads", int64s(pads));
  if (value.has_data()) b.constant("value", value);
  b.node("Pad", "pad", {"x", "pads", value.has_data() ? "value" : ""}, {"p"}, pad_attrs);
  return b;
}

/// A convolution 3x3 with pads of its own behind it.
graph::Graph padded(const Ints &pads, const Tensor &value, const Attrs &pad_attrs, const Attrs &conv_attrs) {
  GraphBuilder b = with_pad(pads, value, pad_attrs);
  b.constant("w", GraphBuilder::ramp({3, 2, 3, 3})).node("Conv", "conv", {"p", "w"}, {"y"}, conv_attrs);
  return b.build({"y"});
}

graph::Graph pooled(const Ints &pads, const Tensor &value, Attrs pool_attrs) {
  pool_attrs.set("kernel_shape", Ints{3, 3});
  return with_pad(pads, value, {}).node("MaxPool", "pool", {"p"}, {"y"}, pool_attrs).build({"y"});
}

void expect(const graph::Graph &g, std::size_t pads_left) {
  const Tensor x = GraphBuilder::ramp({1, 2, 5, 6});
  const Tensor want = graph::evaluate(g, std::vector<Tensor>{x})[0];
  graph::Graph smaller = g;
  graph::run_passes(smaller, graph::Pipeline::inference);
  assert_int_equal(count_of(smaller, "Pad"), pads_left);
  const Tensor got = graph::evaluate(smaller, std::vector<Tensor>{x})[0];
  assert_true(got.shape() == want.shape());
  assert_memory_equal(got.data(), want.data(), static_cast<std::size_t>(want.count()) * sizeof(float));
}

void test_pads(void **) {
  const Tensor none, zero = Tensor::scalar(0.0f), one = Tensor::scalar(1.0f);
  const Attrs own = attrs({{"pads", Ints{1, 0, 2, 1}}, {"strides", Ints{2, 1}}});
  expect(padded({0, 0, 1, 2, 0, 0, 0, 3}, none, {}, {}), 0);
  expect(padded({0, 0, 1, 2, 0, 0, 0, 3}, zero, {}, own), 0);
  expect(padded({0, 0, 1, 2, 0, 0, 0, 3}, one, {}, own), 1);
  expect(padded({0, 0, 1, 2, 0, 0, 0, 3}, none, attrs({{"mode", std::string("edge")}}), own), 1);
  expect(padded({0, 0, -1, 2, 0, 0, 0, 3}, none, {}, own), 1);
  expect(padded({0, 0, 1, 2, 0, 0, 0, 3}, none, {}, attrs({{"auto_pad", std::string("SAME_UPPER")}})), 1);
}

void test_pads_of_pools(void **) {
  const Tensor less = Tensor::scalar(-std::numeric_limits<float>::infinity()), zero = Tensor::scalar(0.0f);
  const Ints one{0, 0, 1, 0, 0, 0, 0, 1}, three{0, 0, 3, 0, 0, 0, 0, 0};
  const Attrs strides = attrs({{"strides", Ints{2, 2}}}), own = attrs({{"pads", Ints{1, 2, 0, 1}}});
  expect(pooled(one, less, {}), 0);
  expect(pooled(one, less, strides), 0);
  expect(pooled(one, less, own), 0);
  expect(pooled(one, zero, strides), 1);
  expect(pooled(three, less, strides), 1);
  expect(pooled(one, less, attrs({{"ceil_mode", std::int64_t{1}}, {"strides", Ints{2, 2}}})), 1);
  expect(pooled(one, less, attrs({{"dilations", Ints{1, 2}}})), 1);
}

/// Where nothing is left open, a Reshape to the shape that is there does nothing; a Cast to the type that is there never
/// does anything.
void test_idle_nodes(void **) {
  const auto left = [](std::int64_t batch, const Ints &shape, std::int64_t type) {
    GraphBuilder b;
    b.input("x", {batch, 2, 3}).constant("shape", int64s(shape)).node("Relu", "relu", {"x"}, {"r"});
    b.node("Reshape", "reshape", {"r", "shape"}, {"s"}).node("Cast", "cast", {"s"}, {"c"}, attrs({{"to", type}}));
    b.node("Abs", "abs", {"c"}, {"y"});
    graph::Graph g = b.build({"y"});
    graph::remove_identities(g);
    return g.nodes.size();
  };
  assert_int_equal(left(4, {4, 2, -1}, QTN_FLOAT32), 2);
  assert_int_equal(left(4, {2, 4, 3}, QTN_FLOAT32), 3);
  assert_int_equal(left(-1, {1, 2, 3}, QTN_FLOAT32), 3);
  assert_int_equal(left(4, {4, 2, 3}, QTN_FLOAT64), 3);
}

const std::string kConv1 = "conv1", kBn1 = "bn1", kRelu1 = "relu1", kConv2 = "conv2", kBn2 = "bn2", kRelu2 = "relu2";

/// Two times Conv, BatchNormalization and Relu; Clip between 0 and 6, read twice; a sum.
graph::Graph two_blocks() {
  GraphBuilder b;
  b.input("x", {1, 2, 3, 3}).constant("zero", Tensor::scalar(0.0f)).constant("six", Tensor::scalar(6.0f));
  for (const char *p : {"scale", "b", "mean", "var"}) {
    Tensor t = GraphBuilder::ramp({2});
    for (int i = 0; i < 2; ++i) t.as<float>()[i] = 2.0f + t.as<float>()[i];
    b.constant(p, t);
  }
  b.conv(kConv1, "x", "c1", 2, 2).node("BatchNormalization", kBn1, {"c1", "scale", "b", "mean", "var"}, {"n1"});
  b.node("Relu", kRelu1, {"n1"}, {"r1"});
  b.conv(kConv2, "r1", "c2", 2, 2).node("BatchNormalization", kBn2, {"c2", "scale", "b", "mean", "var"}, {"n2"});
  b.node("Relu", kRelu2, {"n2"}, {"r2"});
  b.node("Clip", "clip", {"r2", "zero", "six"}, {"k"}).node("Abs", "abs", {"k"}, {"a"});
  b.node("Add", "add", {"a", "k"}, {"y"});
  graph::Graph g = b.build({"y"});
  for (graph::Value &value : g.values)
    if (value.name == "c1" || value.name == "c2") value.shape = Shape{1, 2, 3, 3};
  return g;
}

Tensor outcome(const graph::Graph &g) {
  return graph::evaluate(g, std::vector<Tensor>{GraphBuilder::ramp({1, 2, 3, 3})})[0];
}

std::vector<std::string> names_of(const graph::Graph &g) {
  std::vector<std::string> names;
  for (const graph::Node &node : g.nodes) names.push_back(node.name);
  return names;
}

graph::Graph fused(std::vector<std::string_view> names) {
  graph::Graph g = two_blocks();
  graph::fuse_chain(g, names);
  return g;
}

void test_chains(void **) {
  const std::vector<std::string> rest = {kConv2, kBn2, kRelu2, "clip", "abs", "add"};
  const auto expect_first = [&](const graph::Graph &g, std::vector<std::string> names) {
    names.insert(names.end(), rest.begin(), rest.end());
    assert_true(names_of(g) == names);
    const Tensor want = outcome(two_blocks()), got = outcome(g);
    for (std::int64_t i = 0; i < want.count(); ++i)
      assert_float_equal(got.as<const float>()[i], want.as<const float>()[i], 1e-5);
  };
  expect_first(fused({kConv1, kBn1, kRelu1}), {kConv1});
  expect_first(fused({kConv1, kBn1}), {kConv1, kRelu1});
  expect_first(fused({kBn1, kRelu1}), {kConv1, kBn1});
  // What was fused as BN and Relu still becomes one with its convolution.
  graph::Graph g = fused({kBn1, kRelu1});
  graph::run_passes(g, graph::Pipeline::inference);
  graph::Graph automatic = two_blocks();
  graph::run_passes(automatic, graph::Pipeline::inference);
  assert_true(names_of(g) == names_of(automatic));
  assert_memory_equal(outcome(g).data(), outcome(automatic).data(), 18 * sizeof(float));
}

/// What was folded by name comes back as it was: the same nodes, the same bits.
void test_restored(void **) {
  for (const std::vector<std::string_view> &names :
       {std::vector<std::string_view>{kConv1, kBn1, kRelu1}, std::vector<std::string_view>{kConv2, kBn2}}) {
    graph::Graph g = fused(names);
    graph::restore_norms(g);
    graph::separate_clamps(g);
    assert_int_equal(count_of(g, "BatchNormalization"), 2);
    assert_int_equal(count_of(g, "Relu"), 2);
    assert_memory_equal(outcome(g).data(), outcome(two_blocks()).data(), 18 * sizeof(float));
  }
  // One normalization after the other, and weights that somebody has changed since.
  GraphBuilder b;
  b.input("x", {1, 2, 3, 3}).constant("one", GraphBuilder::ramp({2}));
  const Tensor variance = Tensor::from<float>(QTN_FLOAT32, Shape{2}, std::vector<float>{2, 3});
  b.constant("v", variance).conv(kConv1, "x", "c", 2, 2);
  b.node("BatchNormalization", kBn1, {"c", "one", "one", "one", "v"}, {"n"});
  b.node("BatchNormalization", kBn2, {"n", "v", "one", "one", "v"}, {"y"});
  const graph::Graph whole = b.build({"y"});
  graph::Graph g = whole;
  graph::fuse_chain(g, std::vector<std::string_view>{kConv1, kBn1});
  graph::fuse_chain(g, std::vector<std::string_view>{kConv1, kBn2});
  assert_true(names_of(g) == std::vector<std::string>{kConv1});
  graph::Graph changed = g;
  graph::restore_norms(g);
  assert_true(names_of(g) == names_of(whole));
  assert_memory_equal(outcome(g).data(), outcome(whole).data(), 18 * sizeof(float));
  graph::Value &weight = changed.value(changed.nodes[0].inputs[1]);
  weight.constant = weight.constant.clone();
  graph::restore_norms(changed);
  assert_true(names_of(changed) == std::vector<std::string>{kConv1});
}

/// A filter must hold for both nodes.
void test_filters(void **) {
  const auto only = [](std::string_view name) { return [name](const graph::Node &node) { return node.name == name; }; };
  for (const std::string_view name : {kConv1, kBn1, kRelu1}) {
    graph::Graph g = two_blocks();
    graph::fold_batch_norms(g, only(name));
    graph::fuse_clamps(g, only(name));
    assert_true(names_of(g) == names_of(two_blocks()));
  }
}

/// x [1][2][6] times W [6][4], on its way to a BatchNormalization of four columns.
GraphBuilder columns(const std::string &normalized) {
  GraphBuilder b;
  b.input("x", {1, 2, 6})
      .constant("w", GraphBuilder::ramp({6, 4}))
      .constant("scale", Tensor::from<float>(QTN_FLOAT32, Shape{4}, std::vector<float>{1, -2, 0.5f, 3}))
      .constant("shift", GraphBuilder::ramp({4}))
      .constant("variance", Tensor::from<float>(QTN_FLOAT32, Shape{4}, std::vector<float>{0.5f, 1, 2, 4}))
      .constant("matrix", int64s({-1, 4}))
      .constant("other", int64s({4, -1}))
      .node("MatMul", "product", {"x", "w"}, {"p"})
      .node("BatchNormalization", "norm", {normalized, "scale", "shift", "shift", "variance"}, {"n"});
  return b;
}

/// Values stay, except for the rounding of floats.
void expect_columns(GraphBuilder &b, const std::vector<std::string> &outputs, bool folds) {
  graph::Graph g = b.build(outputs);
  graph::sort_topologically(g);
  graph::Graph folded = g;
  graph::fold_norms_of_columns(folded);
  assert_int_equal(count_of(folded, "BatchNormalization"), folds ? 0 : 1);
  assert_int_equal(folded.nodes.size(), g.nodes.size() - (folds && count_of(g, "Add") > 0 ? 1 : 0));
  const std::vector<Tensor> x = {GraphBuilder::ramp({1, 2, 6})};
  const std::vector<Tensor> want = graph::evaluate(g, x), got = graph::evaluate(folded, x);
  for (std::size_t o = 0; o < want.size(); ++o) {
    assert_true(got[o].shape() == want[o].shape() && got[o].dtype() == want[o].dtype());
    for (std::int64_t i = 0; i < want[o].count(); ++i) {
      if (want[o].dtype() == QTN_INT64)
        assert_int_equal(got[o].as<const std::int64_t>()[i], want[o].as<const std::int64_t>()[i]);
      else
        assert_float_equal(got[o].as<const float>()[i], want[o].as<const float>()[i], 1e-5);
    }
  }
}

void test_norms_of_columns(void **) {
  GraphBuilder flat = columns("f"), last = columns("f"), reshaped = columns("f"), biased = columns("f");
  flat.node("Flatten", "flatten", {"p"}, {"f"}, attrs({{"axis", std::int64_t{2}}}));
  expect_columns(flat, {"n"}, true);
  last.node("Flatten", "flatten", {"p"}, {"f"}, attrs({{"axis", std::int64_t{-1}}})).node("Relu", "relu", {"n"}, {"y"});
  expect_columns(last, {"y"}, true);
  reshaped.node("Reshape", "reshape", {"p", "matrix"}, {"f"});
  expect_columns(reshaped, {"n"}, true);
  biased.constant("bias", GraphBuilder::ramp({4}))
      .node("Add", "add", {"bias", "p"}, {"a"})
      .node("Reshape", "reshape", {"a", "matrix"}, {"f"});
  expect_columns(biased, {"n"}, true);
  GraphBuilder shapes = columns("f");  // of the product and of the matrix, as LeViT reads the first
  shapes.node("Flatten", "flatten", {"p"}, {"f"}, attrs({{"axis", std::int64_t{2}}}))
      .node("Shape", "before", {"p"}, {"s"})
      .node("Shape", "after", {"f"}, {"t"})
      .node("Reshape", "back", {"n", "s"}, {"y"});
  expect_columns(shapes, {"y", "t"}, true);
}

void test_norms_of_other_axes(void **) {
  GraphBuilder rows = columns("f"), transposed = columns("f"), read_twice = columns("f"), shown = columns("f");
  rows.constant("four", int64s({1, 2, 4})).node("Reshape", "reshape", {"p", "four"}, {"q"});
  rows.node("Transpose", "turn", {"q"}, {"f"}, attrs({{"perm", Ints{0, 2, 1}}}));
  expect_columns(rows, {"n"}, false);
  transposed.node("Reshape", "reshape", {"p", "other"}, {"g"});
  transposed.node("Transpose", "turn", {"g"}, {"f"}, attrs({{"perm", Ints{1, 0}}}));
  expect_columns(transposed, {"n"}, false);
  read_twice.node("Reshape", "reshape", {"p", "matrix"}, {"f"}).node("Relu", "relu", {"p"}, {"y"});
  expect_columns(read_twice, {"n", "y"}, false);
  shown.node("Reshape", "reshape", {"p", "matrix"}, {"f"});
  expect_columns(shown, {"n", "f"}, false);
}

void test_no_chains(void **) {
  expect_error(QTN_EINVAL, "at least 2 nodes, not 0", [] { fused({}); });
  expect_error(QTN_EINVAL, "there is no node \"bn9\"", [] { fused({kConv1, "bn9"}); });
  expect_error(QTN_EINVAL, "\"relu1\" does not read \"conv1\"", [] { fused({kConv1, kRelu1}); });
  expect_error(QTN_EINVAL, "\"relu1\" (Relu), \"conv2\" (Conv) do not become one", [] { fused({kRelu1, kConv2}); });
  expect_error(QTN_EINVAL, "\"relu2\" (Relu), \"clip\" (Clip) do not become one", [] { fused({kRelu2, "clip"}); });
  expect_error(QTN_EINVAL, "not only \"abs\" reads \"clip\"", [] { fused({"clip", "abs"}); });
}

void test_relu6(void **) {
  const auto replaced = [](graph::Graph g, std::string_view where) {
    graph::replace_relu6(g, [&](const graph::Node &node) { return node.name == where; });
    return g;
  };
  const graph::Graph plain = two_blocks();
  assert_int_equal(count_of(replaced(plain, "clip"), "Clip"), 0);
  assert_int_equal(count_of(replaced(plain, "clip"), "Relu"), 3);
  assert_int_equal(count_of(replaced(plain, "add"), "Clip"), 1);
  graph::Graph fused_clamp = two_blocks();
  graph::run_passes(fused_clamp, graph::Pipeline::inference);
  graph::Node &conv = fused_clamp.nodes[1];
  assert_true(conv.name == kConv2 && conv.clamp->hi == 6.0f);
  assert_true(std::isinf(replaced(fused_clamp, kConv2).nodes[1].clamp->hi));
  assert_true(replaced(fused_clamp, kConv1).nodes[1].clamp->hi == 6.0f);
  conv.clamp->hi = 5.0f;
  assert_true(replaced(fused_clamp, kConv2).nodes[1].clamp->hi == 5.0f);
}

/// Bounds behind one another, each an operator and its operands: how many stay what they are, and how many become a Clip.
/// The others go into the convolution before them.
void expect_bounded(const std::vector<std::pair<const char *, std::vector<std::string>>> &bounds, const Tensor &c,
                    bool behind_conv, std::size_t left, std::size_t clips) {
  GraphBuilder b;
  b.input("x", {2, 3, 4})
      .constant("c", c)
      .constant("w", GraphBuilder::ramp({3, 3, 1}))
      .constant("six", Tensor::scalar(0.5f));
  b.node(behind_conv ? "Conv" : "Neg", "first",
         behind_conv ? std::vector<std::string>{"x", "w"} : std::vector<std::string>{"x"}, {"a0"});
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    std::vector<std::string> operands = bounds[i].second;
    for (std::string &operand : operands)
      if (operand == "a") operand += std::to_string(i);
    b.node(bounds[i].first, cat("bound", i), operands, {cat("a", i + 1)});
  }
  const graph::Graph g = b.build({cat("a", bounds.size())});
  graph::Graph fused = g;
  graph::run_passes(fused, graph::Pipeline::inference);
  const std::size_t stay = count_of(fused, "Max") + count_of(fused, "Min") + count_of(fused, "Relu"),
                    made = count_of(fused, "Clip");
  if (stay != left || made != clips)
    fail_test(bounds[0].first, " by ", describe(c), behind_conv ? " behind Conv" : "", ", ", bounds.size(),
              " bounds: ", stay, " stay, ", made, " are Clip");
  Tensor x = GraphBuilder::ramp({2, 3, 4});
  constexpr float kOdd[] = {0.0f, -0.0f, NAN, INFINITY, -INFINITY, 0.25f, -0.25f};
  std::copy(std::begin(kOdd), std::end(kOdd), x.as<float>());
  const Tensor want = graph::evaluate(g, std::vector<Tensor>{x})[0],
               got = graph::evaluate(fused, std::vector<Tensor>{x})[0];
  assert_true(got.shape() == want.shape());
  for (std::int64_t i = 0; i < want.count(); ++i) {
    const float a = want.as<const float>()[i], v = got.as<const float>()[i];
    if (std::isnan(a) ? !std::isnan(v) : a != v || std::signbit(a) != std::signbit(v))
      fail_test(i, ": ", v, ", not ", a);
  }
}

void test_bounds(void **) {
  const Tensor quarter = Tensor::scalar(0.25f), zero = Tensor::scalar(0.0f), nothing = Tensor::scalar(NAN);
  const Tensor list = Tensor::from<float>(QTN_FLOAT32, {1}, std::vector{0.25f}),
               four = Tensor::from<float>(QTN_FLOAT32, {1, 1, 1, 1}, std::vector{0.25f}),
               several = GraphBuilder::ramp({4});
  for (const char *op : {"Max", "Min"}) {
    for (const Tensor &c : {quarter, list}) {
      expect_bounded({{op, {"a", "c"}}}, c, false, 0, 1);
      expect_bounded({{op, {"c", "a"}}}, c, false, 0, 1);
      expect_bounded({{op, {"a", "c"}}}, c, true, 0, 0);
      expect_bounded({{op, {"a", "c"}}, {"Relu", {"a"}}}, c, true, 0, 0);
    }
    const bool is_max = std::string_view(op) == "Max";  // of two zeros a Clip gives the lower bound, else its element
    expect_bounded({{op, {is_max ? "a" : "c", is_max ? "c" : "a"}}}, zero, false, 0, 1);
    expect_bounded({{op, {is_max ? "c" : "a", is_max ? "a" : "c"}}}, zero, false, 1, 0);
    for (const Tensor &c : {four, several, nothing}) expect_bounded({{op, {"a", "c"}}}, c, false, 1, 0);
    expect_bounded({{op, {"a", "c", "six"}}}, quarter, false, 1, 0);
  }
  expect_bounded({{"Relu", {"a"}}, {"Min", {"a", "six"}}}, quarter, true, 0, 0);
  expect_bounded({{"Max", {"a", "six"}}, {"Min", {"a", "c"}}}, quarter, true, 0, 1);  // nothing is within both
}

/// What is moved off a grid is on it, except indices, outputs, and results that other numbers were put into.
void test_grids_behind_moves(void **) {
  GraphBuilder b;
  b.input("x", {1, 1, 4, 4}).node("Relu", "relu", {"x"}, {"r"});
  b.node("MaxPool", "pool", {"r"}, {"m", "i"}, attrs({{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}));
  b.node("Transpose", "turn", {"m"}, {"t"}).node("Cast", "cast", {"i"}, {"c"}, attrs({{"to", std::int64_t{1}}}));
  b.constant("all", GraphBuilder::ramp({8})).constant("once", GraphBuilder::ramp({4}));
  b.node(
      "Resize", "crop", {"m", "all", "once"}, {"z"},
      attrs({{"coordinate_transformation_mode", std::string("tf_crop_and_resize")}, {"extrapolation_value", 100.0}}));
  b.node("Tanh", "a", {"t"}, {"ta"}).node("Tanh", "b", {"z"}, {"tb"}).node("Transpose", "last", {"m"}, {"out"});
  graph::Graph g = b.build({"ta", "tb", "c", "out"});
  const auto value = [&](const char *name) -> graph::Value & {
    return *std::ranges::find(g.values, name, &graph::Value::name);
  };
  value("r").quantizer = std::make_shared<Quantizer>(QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, std::vector<double>{0.5},
                                                     std::vector<std::int64_t>{3}, Numerics::onnx);
  graph::stay_on_grids(g);
  for (const char *name : {"m", "t"}) assert_true(value(name).quantizer == value("r").quantizer);
  for (const char *name : {"i", "z", "out", "c", "ta"}) assert_null(value(name).quantizer.get());
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_pads),
                              cmocka_unit_test(test_pads_of_pools),
                              cmocka_unit_test(test_idle_nodes),
                              cmocka_unit_test(test_chains),
                              cmocka_unit_test(test_restored),
                              cmocka_unit_test(test_filters),
                              cmocka_unit_test(test_norms_of_columns),
                              cmocka_unit_test(test_norms_of_other_axes),
                              cmocka_unit_test(test_no_chains),
                              cmocka_unit_test(test_relu6),
                              cmocka_unit_test(test_bounds),
                              cmocka_unit_test(test_grids_behind_moves)};
  return cmocka_run_group_tests_name("graph.fuse", tests, nullptr, nullptr);
}
