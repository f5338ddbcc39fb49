// SPDX-License-Identifier: Apache-2.0
// What follows a convolution of floats works on its image as it lies, without a copy. Numbers are small integers times powers
// of two, so that sums are exact and both engines agree to the bit.
#include <nlohmann/json.hpp>

#include "quant/graph_builder.hpp"
#include "runtime/session.hpp"

namespace qtn::test {
namespace {

Tensor integers(const Shape &shape, float unit = 1) {
  Tensor t(QTN_FLOAT32, shape);
  for (std::int64_t i = 0; i < t.count(); ++i) t.as<float>()[i] = static_cast<float>((i * 37) % 13 - 6) * unit;
  return t;
}

Tensor floats(std::vector<float> values) {
  return Tensor::from<float>(QTN_FLOAT32, {static_cast<std::int64_t>(values.size())}, values);
}

std::vector<std::string> ops_of(const runtime::Session &session, const Tensor &x) {
  const Tensor *operands[] = {&x};
  const nlohmann::json profile = nlohmann::json::parse(session.profile(operands));
  std::vector<std::string> ops;
  for (const auto &node : profile.at("nodes")) ops.push_back(node.at("op"));
  return ops;
}

/// Between two convolutions the steps are these, whichever come before and after.
void expect(GraphBuilder &b, const Shape &x_shape, const std::vector<std::string> &steps, std::size_t most_copies = 2) {
  const graph::Graph g = b.build({"y"});
  const Tensor x = integers(x_shape);
  const Tensor *operands[] = {&x};
  const runtime::Session session(g, {});
  const runtime::Session reference(g, {.engine = runtime::Engine::reference});
  const Tensor want = reference.run(operands)[0], got = session.run(operands)[0];
  if (!equal(got, want)) fail_test(describe(got), ", not ", describe(want));
  std::vector<std::string> ops = ops_of(session, x);
  std::erase(ops, "Copy");
  const std::size_t copies = ops_of(session, x).size() - ops.size();
  if (ops != steps || copies > most_copies)
    fail_test(nlohmann::json(ops_of(session, x)).dump(), " with ", copies, " copies");
}

GraphBuilder between(const Shape &x, std::int64_t channels, const std::function<void(GraphBuilder &)> &add,
                     std::int64_t groups = 1) {
  GraphBuilder b;
  Shape filter = x;
  for (std::size_t axis = 2; axis < x.size(); ++axis) filter[axis] = 1;
  filter[0] = channels, filter[1] = x[1] / groups;
  Shape last = filter;
  last[0] = 3, last[1] = channels;
  b.input("x", x).constant("w", integers(filter)).constant("v", integers(last));
  b.node("Conv", "first", {"x", "w"}, {"u"}, attrs({{"group", groups}}));
  add(b);
  b.node("Conv", "last", {"r", "v"}, {"y"});
  return b;
}

void expect_resized(const Shape &x, const Attrs &how, const Tensor &scales, const Tensor &sizes, bool on_image = true) {
  GraphBuilder b = between(x, 8, [&](GraphBuilder &g) {
    std::vector<std::string> operands{"u", "", ""};
    if (scales.has_data()) g.constant("scales", scales), operands[2] = "scales";
    if (sizes.has_data()) g.constant("sizes", sizes), operands.push_back("sizes");
    g.node("Resize", "resize", operands, {"r"}, how);
  });
  if (on_image) return expect(b, x, {"Conv", "Resize", "Conv"});
  const graph::Graph g = b.build({"y"});
  const Tensor of = integers(x);
  const Tensor *operands[] = {&of};
  const runtime::Session session(g, {}), reference(g, {.engine = runtime::Engine::reference});
  assert_true(equal(session.run(operands)[0], reference.run(operands)[0]));
}

void test_resized_images(void **) {
  const Shape image{2, 4, 5, 6}, line{2, 4, 9}, volume{1, 4, 3, 4, 5};
  const Attrs nearest = attrs({{"mode", "nearest"}, {"coordinate_transformation_mode", "asymmetric"}}),
              linear = attrs({{"mode", "linear"}}), places = attrs({{"mode", "linear"}, {"axes", Ints{-1, 2}}});
  for (const Attrs &how : {nearest, linear}) {
    expect_resized(image, how, floats({1, 1, 2, 4}), {});
    expect_resized(image, how, floats({1, 1, 2, 0.5f}), {});
    expect_resized(image, how, {}, Tensor::from_ints(Ints{2, 8, 10, 12}));
    expect_resized(line, how, floats({1, 1, 2}), {});
    expect_resized(volume, how, floats({1, 1, 2, 1, 2}), {});
  }
  expect_resized(image, places, floats({2, 4}), {});
  expect_resized(image, places, {}, Tensor::from_ints(Ints{12, 10}));
}

/// Batch and channels, and what follows from all axes.
void test_images_that_are_copied(void **) {
  const Shape image{2, 4, 5, 6};
  const Attrs aspect = attrs({{"mode", "linear"}, {"keep_aspect_ratio_policy", "not_larger"}}),
              linear = attrs({{"mode", "linear"}}), nearest = attrs({{"mode", "nearest"}});
  expect_resized(image, aspect, {}, Tensor::from_ints(Ints{2, 8, 10, 24}), false);
  expect_resized(image, nearest, floats({1, 1.01f, 2, 2}), {}, false);
  expect_resized(image, linear, floats({2, 1, 2, 2}), {}, false);
}

/// Channels with a few outputs each, of the graph's input and of what was computed; pixels in a column lie as an image.
void test_channels_with_several_outputs(void **) {
  for (const Shape &x : {Shape{2, 4, 5, 6}, Shape{2, 4, 1}, Shape{3, 4, 9}, Shape{1, 4, 1, 1}})
    for (const std::int64_t times : {2, 3, 8}) {
      Shape filter = x;
      filter[0] = 4 * times, filter[1] = 1;
      for (std::size_t axis = 2; axis < x.size(); ++axis) filter[axis] = std::min<std::int64_t>(x[axis], 3);
      GraphBuilder b;
      b.input("x", x).constant("w", integers(filter)).node("Conv", "first", {"x", "w"}, {"y"}, attrs({{"group", 4}}));
      expect(b, x, {"Conv"}, 3);
    }
}

/// A line that stands upright, and an image that does in a volume: as kernels for those that lie.
void test_upright_lines(void **) {
  for (const std::int64_t groups : {1, 8})
    for (const std::int64_t filters : {1, 3, 24})
      for (const Shape &x : {Shape{2, 8, 40, 1}, Shape{1, 8, 6, 20, 1}, Shape{2, 8, 30, 1, 1}}) {
        Shape filter{groups * filters, 8 / groups};
        Ints kernel, pads(2 * (x.size() - 2));
        for (std::size_t axis = 2; axis < x.size(); ++axis) {
          filter.push_back(x[axis] == 1 ? 1 : 5);
          kernel.push_back(x[axis] == 1 ? 1 : 3);
          pads[axis - 2] = x[axis] == 1 ? 0 : 2;
        }
        GraphBuilder b;
        b.input("x", x).constant("w", integers(filter));
        b.node("Conv", "line", {"x", "w"}, {"u"}, attrs({{"group", groups}, {"pads", pads}}));
        b.node("MaxPool", "pool", {"u"}, {"y"}, attrs({{"kernel_shape", kernel}}));
        expect(b, x, {"Conv", "MaxPool"}, 5);
      }
}

/// For a pool, since a convolution pads its image itself.
void test_pads(void **) {
  for (const Shape &x : {Shape{2, 4, 5, 6}, Shape{2, 4, 9}, Shape{1, 4, 3, 4, 5}}) {
    Ints pads(2 * x.size(), 0);
    pads[x.size() - 1] = 2, pads[x.size() + 2] = 1;
    GraphBuilder b = between(x, 8, [&](GraphBuilder &g) {
      const std::vector<std::int64_t> kernel(x.size() - 2, 2);
      g.constant("pads", ints(pads)).constant("value", floats({-3}).select(0, 0));
      g.node("Pad", "pad", {"u", "pads", "value"}, {"p"});
      g.node("MaxPool", "pool", {"p"}, {"r"}, attrs({{"kernel_shape", kernel}}));
    });
    expect(b, x, {"Conv", "Pad", "MaxPool", "Conv"});
  }
}

/// Some pixels at once where they have few channels, and what is left of them; and a sum behind them.
void test_normalized_pixels(void **) {
  for (const std::int64_t channels : {2, 3, 8, 40, 100}) {
    const Shape x{2, 4, 7, 5};
    GraphBuilder b = between(x, channels, [&](GraphBuilder &g) {
      g.node("Relu", "relu", {"u"}, {"p"}).constant("scale", integers({channels}));
      g.constant("shift", integers({channels}, 2)).constant("mean", integers({channels}, 4));
      g.constant("variance", floats(std::vector<float>(static_cast<std::size_t>(channels), 4)));
      g.node("BatchNormalization", "bn", {"p", "scale", "shift", "mean", "variance"}, {"n"}, attrs({{"epsilon", 0.0}}));
      g.node("Add", "sum", {"n", "p"}, {"r"});
    });
    expect(b, x, {"Conv", "BatchNormalization+Add", "Conv"});
  }
}

/// As of an image with one pixel in each row, by the kernel that these have.
void test_normalized_rows(void **) {
  GraphBuilder b;
  b.input("x", {1, 5, 6}).constant("w", integers({6, 8})).node("MatMul", "product", {"x", "w"}, {"p"});
  b.constant("rows", ints({5, 8})).node("Reshape", "flat", {"p", "rows"}, {"f"});
  b.constant("scale", integers({8})).constant("shift", integers({8}, 2)).constant("mean", integers({8}, 4));
  b.constant("variance", floats({1, 4, 16, 1, 4, 0.25f, 4, 1}));
  b.node("BatchNormalization", "bn", {"f", "scale", "shift", "mean", "variance"}, {"y"}, attrs({{"epsilon", 0.0}}));
  const graph::Graph g = b.build({"y"});
  const Tensor x = integers({1, 5, 6}), *operands[] = {&x};
  const runtime::Session session(g, {}), reference(g, {.engine = runtime::Engine::reference});
  assert_true(equal(session.run(operands)[0], reference.run(operands)[0]));
  const nlohmann::json nodes = nlohmann::json::parse(session.profile(operands)).at("nodes");
  assert_string_equal(nodes.back().at("op").get<std::string>().c_str(), "BatchNormalization");
  assert_string_not_equal(nodes.back().at("kernel").get<std::string>().c_str(), "BatchNormalization");
}

/// What a run is given is read where it lies, wherever that is this time: by strides, in parts and in other shapes.
void test_views_of_inputs(void **) {
  GraphBuilder b;
  b.input("x", {2, 5, 6, 4}).constant("w", integers({3, 4, 1, 1}));
  b.node("Transpose", "channels_second", {"x"}, {"t"}, attrs({{"perm", std::vector<std::int64_t>{0, 3, 1, 2}}}));
  b.node("Conv", "conv", {"t", "w"}, {"y"});
  b.constant("matrix", ints({60, 4})).node("Reshape", "reshape", {"x", "matrix"}, {"rows"});
  b.constant("kept", ints({3, 59})).node("Gather", "gather", {"rows", "kept"}, {"some"});
  b.constant("lengths", ints({1, 4}))
      .node("Split", "split", {"x", "lengths"}, {"l", "r"}, attrs({{"axis", std::int64_t{1}}}));
  b.node("Neg", "negate_rest", {"r"}, {"rest"});
  b.constant("from", ints({1})).constant("to", ints({3})).constant("axis", ints({1}));
  b.node("Slice", "slice", {"x", "from", "to", "axis"}, {"s"}).node("Neg", "neg", {"s"}, {"negated"});
  const graph::Graph g = b.build({"y", "some", "rest", "negated"});
  const runtime::Session session(g, {}), reference(g, {.engine = runtime::Engine::reference});
  const Tensor first = integers({2, 5, 6, 4}), second = integers({2, 5, 6, 4}, 0.5f);
  for (const Tensor &x : {first, second, first}) {
    const Tensor *operands[] = {&x};
    const std::vector<Tensor> got = session.run(operands), want = reference.run(operands);
    for (std::size_t i = 0; i < want.size(); ++i) assert_true(equal(got[i], want[i]));
  }
  for (const std::string &op : ops_of(session, first))
    assert_true(op != "Transpose" && op != "Reshape" && op != "Slice" && op != "Split");
}

/// Rows that are one row lie nowhere else.
void test_normalized_inputs(void **) {
  for (const bool expanded : {false, true})
    for (const std::int64_t rows : {1, 3, 70}) {
      const Shape shape{expanded ? 1 : rows, 2};
      GraphBuilder b;
      b.input("x", shape).constant("rows", ints({rows, 2}));
      if (expanded) b.node("Expand", "expand", {"x", "rows"}, {"f"});
      b.constant("scale", integers({2})).constant("shift", integers({2}, 2)).constant("mean", integers({2}, 4));
      b.constant("variance", floats({4, 0.25f}));
      b.node("BatchNormalization", "bn", {expanded ? "f" : "x", "scale", "shift", "mean", "variance"}, {"y"},
             attrs({{"epsilon", 0.0}}));
      const graph::Graph g = b.build({"y"});
      graph::Graph undeclared = g;
      undeclared.value(undeclared.inputs[0]).shape.reset();
      const Tensor x = integers(shape), *operands[] = {&x};
      const Tensor want = runtime::Session(g, {.engine = runtime::Engine::reference}).run(operands)[0];
      for (const graph::Graph *either : std::initializer_list<const graph::Graph *>{&g, &undeclared})
        assert_true(equal(runtime::Session(*either, {}).run(operands)[0], want));
    }
}

/// Planes that are narrower than vectors, that fill them and that are some more, whether a file says their shapes or not.
void test_normalized_planes(void **) {
  for (const Shape &shape : {Shape{2, 3, 5}, Shape{1, 5, 64}, Shape{3, 4, 70}, Shape{2, 5, 9, 15}, Shape{1, 3, 1, 63},
                             Shape{2, 3, 2, 9, 8}, Shape{2, 3, 1, 1, 1}})
    for (const bool said : {false, true}) {
      const std::int64_t channels = shape[1];
      GraphBuilder b;
      b.input("x", shape).node("Neg", "neg", {"x"}, {"f"});
      b.constant("scale", integers({channels})).constant("shift", integers({channels}, 2));
      b.constant("mean", integers({channels}, 4));
      b.constant("variance", floats(std::vector<float>(static_cast<std::size_t>(channels), 4)));
      b.node("BatchNormalization", "bn", {"f", "scale", "shift", "mean", "variance"}, {"n"}, attrs({{"epsilon", 0.0}}));
      b.node("Clip", "clip", {"n", "", "top"}, {"y"}).constant("top", floats({3}).reshaped({}));
      graph::Graph g = b.build({"y"});
      if (said) g.value(g.nodes[0].outputs[0]).shape = shape;
      const Tensor x = integers(shape), *operands[] = {&x};
      const runtime::Session session(g, {}), reference(g, {.engine = runtime::Engine::reference});
      assert_true(equal(session.run(operands)[0], reference.run(operands)[0]));
      const nlohmann::json nodes = nlohmann::json::parse(session.profile(operands)).at("nodes");
      const auto is_norm = [](const nlohmann::json &node) { return node.at("op") == "BatchNormalization"; };
      const auto norm = std::ranges::find_if(nodes, is_norm);
      assert_true(norm != nodes.end() && norm->at("kernel") != "BatchNormalization");
    }
}

void test_slopes(void **) {
  const Shape image{2, 4, 5, 6};
  const auto by_prelu = [](const Tensor &slopes) {
    return [slopes](GraphBuilder &b) { b.constant("s", slopes).node("PRelu", "relu", {"u", "s"}, {"r"}); };
  };
  const auto by_alpha = [](GraphBuilder &b) { b.node("LeakyRelu", "relu", {"u"}, {"r"}, attrs({{"alpha", 0.125}})); };
  for (const std::int64_t channels : {8, 40, 64}) {
    GraphBuilder each = between(image, channels, by_prelu(integers({channels, 1, 1}, 0.25f))),
                 batched = between(image, channels, by_prelu(integers({1, channels, 1, 1}, 0.25f))),
                 one = between(image, channels, by_prelu(integers({1}, 0.25f))),
                 alpha = between(image, channels, by_alpha),
                 line = between({1, 4, 11}, channels, by_prelu(integers({channels, 1}, 0.25f)));
    for (GraphBuilder *b : {&each, &batched, &one}) expect(*b, image, {"Conv+PRelu", "Conv"});
    expect(alpha, image, {"Conv+LeakyRelu", "Conv"});
    expect(line, {1, 4, 11}, {"Conv+PRelu", "Conv"});
  }
  // Places are no channels, and groups of few channels have short rows.
  GraphBuilder places = between(image, 6, by_prelu(integers({6}, 0.25f))), narrow = between(image, 8, by_alpha, 2);
  expect(places, image, {"Conv", "PRelu", "Conv"});
  expect(narrow, image, {"Conv", "LeakyRelu", "Conv"});

  GraphBuilder rows;
  rows.input("x", {3, 7}).constant("w", integers({7, 20})).constant("s", integers({20}, 0.5f));
  rows.node("MatMul", "product", {"x", "w"}, {"u"}).node("PRelu", "relu", {"u", "s"}, {"y"});
  expect(rows, {3, 7}, {"MatMul+PRelu"});
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_resized_images),
                              cmocka_unit_test(test_images_that_are_copied),
                              cmocka_unit_test(test_channels_with_several_outputs),
                              cmocka_unit_test(test_upright_lines),
                              cmocka_unit_test(test_pads),
                              cmocka_unit_test(test_normalized_pixels),
                              cmocka_unit_test(test_normalized_rows),
                              cmocka_unit_test(test_normalized_planes),
                              cmocka_unit_test(test_views_of_inputs),
                              cmocka_unit_test(test_normalized_inputs),
                              cmocka_unit_test(test_slopes)};
  return cmocka_run_group_tests_name("runtime/images", tests, nullptr, nullptr);
}
