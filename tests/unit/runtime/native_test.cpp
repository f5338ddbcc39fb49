// SPDX-License-Identifier: Apache-2.0
// The native engine against the reference engine, to the bit: every instruction set of this CPU, one and two threads,
// images one by one and together.
#include "graph/integer.hpp"
#include "graph/passes/passes.hpp"
#include "graph/pipelines.hpp"
#include "onnx/onnx.hpp"
#include "runtime/support.hpp"

namespace qtn::test {
namespace {

constexpr std::int64_t kBatch = 5;

void expect_native_is_reference(const graph::Graph &float_graph, std::size_t least_int8_operators,
                                const std::string &config = "onnx") {
  const graph::Graph g = any_batch(quantized(float_graph, quant::Config(config)));
  Shape shape = *float_graph.value(float_graph.inputs[0]).shape;
  shape[0] = kBatch;
  const Tensor x = random(shape, -1.2f, 1.7f, 99);
  const Tensor *inputs[] = {&x};
  const std::vector<Tensor> want = runtime::Session(g, {runtime::Engine::reference, 1}).run(inputs);

  each_isa([&](const std::string &name) {
    for (const int threads : {1, 2}) {
      const runtime::Session session(g, {runtime::Engine::native, threads});
      const std::string what = cat(name, ", ", threads, " threads");
      const std::vector<Tensor> got = session.run(inputs);
      for (std::size_t o = 0; o < want.size(); ++o) expect_equal(got[o], want[o], what);
      for (std::int64_t i = 0; i < kBatch; ++i) {
        const Tensor one = x.slice(0, i, i + 1, 1).clone();
        const Tensor *single[] = {&one};
        const std::vector<Tensor> alone = session.run(single);
        for (std::size_t o = 0; o < want.size(); ++o)
          expect_equal(alone[o], want[o].slice(0, i, i + 1, 1).clone(), what + cat(", image ", i));
      }
      const auto profile = nlohmann::json::parse(session.profile(inputs));
      std::size_t int8_operators = 0;  // a step is several: "Conv+Add"
      for (const auto &node : profile["nodes"]) {
        const std::string op = node["op"];
        if (node["dtype"] == "int8" && node["kernel"] != "definition")
          int8_operators += 1 + static_cast<std::size_t>(std::count(op.begin(), op.end(), '+'));
      }
      if (int8_operators < least_int8_operators)
        fail_test(what, ": only ", int8_operators, " int8 operators in ", profile.dump());
    }
  });
}

/// With an axis of length 1, rows of a matrix lie as pixels of an image do.
void test_residuals_that_lie_as_images(void **) {
  for (const Shape &shape :
       {Shape{1, 1, 8}, Shape{1, 1, 1, 8}, Shape{1, 1, 4, 5}, Shape{1, 15, 1}, Shape{1, 3, 4, 1}}) {
    GraphBuilder b;
    const Shape square{shape.back(), shape.back()};
    b.input("x", shape).constant("w", random(square, -1, 1, 1)).constant("head", random(square, -1, 1, 2));
    b.node("MatMul", "product", {"x", "w"}, {"p"}).node("Add", "residual", {"x", "p"}, {"r"});
    b.node("MatMul", "last", {"r", "head"}, {"y"});
    expect_native_is_reference(b.build({"y"}), 3);
  }
}

/// A product with a bias, rounded block by block and taken through a table before floats of it are anywhere.
void test_products_that_are_rounded_in_blocks(void **) {
  constexpr std::int64_t kFeatures = 24;
  for (const auto &[tokens, hidden, read_twice] :
       {std::tuple(1, 3, false), std::tuple(13, 40, true), std::tuple(90, 707, false), std::tuple(90, 707, true),
        std::tuple(350, 1100, false)}) {
    GraphBuilder b;
    b.input("x", {1, tokens, kFeatures}).constant("w", random({kFeatures, hidden}, -1, 1, 1));
    b.constant("bias", random({hidden}, -1, 1, 2)).constant("back", random({hidden, kFeatures}, -1, 1, 3));
    b.node("MatMul", "first", {"x", "w"}, {"p"}).node("Add", "biased", {"p", "bias"}, {"h"});
    b.node("Gelu", "gelu", {"h"}, {"g"}).node("MatMul", "second", {"g", "back"}, {"s"});
    b.node("Add", "residual", {"s", "x"}, {"r"}).node("MatMul", "third", {"r", "w"}, {"q"});
    if (read_twice) b.node("Mul", "gate", {"q", "h"}, {"m"}).node("MatMul", "last", {"m", "back"}, {"y"});
    expect_native_is_reference(b.build({read_twice ? "y" : "q"}), read_twice ? 6 : 5);
  }
}

void test_convolutions(void **) {
  struct Case {
    Shape x, w;
    Attrs a;
  };
  const std::vector<Case> cases = {
      {{1, 3, 17, 15}, {20, 3, 7, 7}, attrs({{"strides", Ints{2, 2}}, {"pads", Ints{3, 3, 3, 3}}})},
      {{1, 16, 9, 11}, {33, 16, 3, 3}, attrs({{"pads", Ints{1, 1, 1, 1}}})},
      {{1, 5, 8, 8}, {7, 5, 1, 1}, attrs({})},
      {{1, 8, 9, 9}, {12, 8, 1, 1}, attrs({{"strides", Ints{2, 2}}})},
      {{1, 12, 10, 10}, {24, 4, 3, 3}, attrs({{"group", std::int64_t{3}}, {"pads", Ints{0, 2, 1, 0}}})},
      {{1, 6, 12, 12}, {8, 6, 3, 3}, attrs({{"dilations", Ints{2, 3}}, {"auto_pad", std::string("SAME_UPPER")}})},
      {{1, 8, 13}, {10, 8, 3}, attrs({{"pads", Ints{1, 1}}})},
      // One channel, of which several pixels are made together.
      {{1, 1, 300}, {1, 1, 40}, attrs({{"strides", Ints{2}}})},
      {{1, 1, 13, 17}, {1, 1, 3, 3}, attrs({{"pads", Ints{1, 0, 2, 1}}})},
      {{1, 1, 30, 5}, {1, 1, 7, 1}, attrs({{"dilations", Ints{2, 1}}, {"auto_pad", std::string("SAME_UPPER")}})},
      {{1, 1, 6, 7, 8}, {1, 1, 3, 2, 3}, attrs({{"pads", Ints{1, 1, 1, 1, 0, 1}}})},
      // Large enough for tasks of some columns each.
      {{1, 500, 3, 4}, {640, 500, 1, 1}, attrs({})},
      {{1, 90, 9, 8}, {350, 90, 3, 3}, attrs({{"pads", Ints{1, 1, 1, 1}}})},
      {{1, 90, 6, 5}, {350, 90, 3, 3}, attrs({{"pads", Ints{1, 1, 1, 1}}})},
      // 3x3 at every pixel: in groups, in rows that are cut, over planes of which some are outside.
      {{2, 40, 9, 7}, {36, 20, 3, 3}, attrs({{"group", std::int64_t{2}}, {"pads", Ints{2, 1, 0, 3}}})},
      {{1, 64, 5, 205}, {17, 64, 3, 3}, attrs({{"pads", Ints{1, 1, 1, 1}}})},
      {{2, 18, 4, 7, 6},
       {20, 18, 3, 3, 3},
       attrs({{"pads", Ints{2, 1, 1, 0, 1, 1}}, {"strides", Ints{2, 1, 1}}, {"dilations", Ints{2, 1, 1}}})},
  };
  for (const Case &c : cases) {
    GraphBuilder b;
    b.input("x", c.x);
    add_conv(b, "conv", "x", "y", c.w, c.a);
    // A second reader in integers keeps the first result in integers too.
    const std::int64_t channels = c.w[0];
    Shape pointwise{4, channels};
    for (std::size_t i = 2; i < c.x.size(); ++i) pointwise.push_back(1);
    b.node("Relu", "relu", {"y"}, {"r"});
    add_conv(b, "last", "r", "z", pointwise, {});
    expect_native_is_reference(b.build({"z"}), 2);
  }
}

/// Weights of seven bits have a kernel of their own on AVX2; of eight, they would saturate there. Windows of 3x3 at every
/// pixel take fewer products with either.
void test_kernels_by_weights(void **) {
  for (const std::int64_t size : {3, 5}) {
    GraphBuilder b;
    b.input("x", {1, 16, 9, 11});
    add_conv(b, "conv", "x", "y", {33, 16, size, size}, attrs({{"pads", Ints{1, 1, 1, 1}}}));
    const graph::Graph float_graph = b.build({"y"});
    const Tensor x = random({1, 16, 9, 11}, -1.2f, 1.7f, 99);
    const Tensor *inputs[] = {&x};
    for (const bool seven_bits : {false, true}) {
      const graph::Graph g = quantized(float_graph, seven_bits ? seven_bit_weights() : quant::Config("onnx"));
      const char *product = seven_bits ? "avx2pairs_6x16" : "avx2_6x16";
      each_isa([&](const std::string &name) {
        if (name != "avx2") return;
        const auto profile = nlohmann::json::parse(runtime::Session(g, {}).profile(inputs));
        for (const auto &node : profile["nodes"])
          if (node["op"] == "Conv")
            assert_string_equal(std::string(node["kernel"]).c_str(), size == 3 ? "winograd_avx2_6x16" : product);
      });
    }
  }
}

void test_depthwise(void **) {
  for (const std::int64_t channels : {5, 16, 67})
    for (const std::int64_t kernel : {3, 5}) {
      GraphBuilder b;
      b.input("x", {1, channels, 11, 13});
      add_conv(b, "dw", "x", "y", {channels, 1, kernel, kernel},
               attrs({{"group", channels}, {"strides", Ints{kernel == 3 ? 1 : 2, 1}}, {"pads", Ints{1, 2, 1, 2}}}));
      b.constant("six", Tensor::scalar(0.6f)).constant("zero", Tensor::scalar(-0.1f));
      b.node("Clip", "clip", {"y", "zero", "six"}, {"c"});
      add_conv(b, "last", "c", "z", {3, channels, 1, 1}, {});
      expect_native_is_reference(b.build({"z"}), 3);
    }
}

/// Sums of depthwise convolutions that are read in float, of images and of volumes.
void test_depthwise_to_floats(void **) {
  for (const std::int64_t channels : {5, 67})
    for (const Shape &kernel : {Shape{7, 7}, Shape{3, 3}, Shape{2, 3, 3}}) {
      GraphBuilder b;
      Shape x{1, channels, 11, 13}, w{channels, 1};
      if (kernel.size() == 3) x = {1, channels, 4, 6, 7};
      for (const std::int64_t k : kernel) w.push_back(k);
      b.input("x", x);
      add_conv(b, "dw", "x", "y", w, attrs({{"group", channels}}));
      b.node("Softmax", "softmax", {"y"}, {"z"}, attrs({{"axis", std::int64_t{1}}}));
      expect_native_is_reference(b.build({"z"}), 2);
    }
}

/// Rows behind a class token, images of them, and heads with their axes exchanged meet in sums and products.
void test_rows_beside_images(void **) {
  GraphBuilder b;
  b.input("x", {1, 12, 5, 4});
  add_conv(b, "patches", "x", "p", {8, 12, 1, 1}, {});
  b.constant("rows", ints({0, 8, -1})).node("Reshape", "flat", {"p", "rows"}, {"f"});
  b.node("Transpose", "turn", {"f"}, {"t"}, attrs({{"perm", Ints{0, 2, 1}}}));
  b.constant("zero", ints({0}))
      .constant("one", ints({1}))
      .node("Slice", "first", {"t", "zero", "one", "one"}, {"token"});
  b.node("Concat", "behind", {"token", "t"}, {"c"}, attrs({{"axis", std::int64_t{1}}}));
  b.constant("w", random({8, 8}, -1, 1, 3)).node("MatMul", "product", {"c", "w"}, {"q"});
  b.node("Add", "residual", {"c", "q"}, {"r"});
  b.constant("end", ints({21})).node("Slice", "others", {"r", "one", "end", "one"}, {"o"});
  b.node("Transpose", "back", {"o"}, {"u"}, attrs({{"perm", Ints{0, 2, 1}}}));
  b.constant("image", ints({0, 8, 5, 4})).node("Reshape", "image_of", {"u", "image"}, {"i"});
  add_conv(b, "position", "i", "v", {8, 1, 3, 3}, attrs({{"pads", Ints{1, 1, 1, 1}}, {"group", std::int64_t{8}}}));
  b.node("Add", "encoded", {"v", "p"}, {"e"}).node("Sub", "less", {"e", "i"}, {"d"});
  // Heads of two features: [batch, heads, rows, 2] as convolutions and as products have them.
  b.constant("heads", ints({0, 4, 2, 20})).node("Reshape", "heads_of_image", {"d", "heads"}, {"h2"});
  b.node("Transpose", "heads_turned", {"h2"}, {"h"}, attrs({{"perm", Ints{0, 1, 3, 2}}}));
  b.constant("split", ints({0, 20, 4, 2})).node("Reshape", "heads_of_rows", {"o", "split"}, {"g2"});
  b.node("Transpose", "rows_turned", {"g2"}, {"g"}, attrs({{"perm", Ints{0, 2, 1, 3}}}));
  b.node("Mul", "gated", {"h", "g"}, {"m"});
  b.constant("pads", ints({0, 0, 1, 0, 0, 0, 0, 0})).node("Pad", "pad", {"m", "pads"}, {"n"});
  b.constant("all", ints({0, 21, 4, 2})).node("Reshape", "split_all", {"r", "all"}, {"a2"});
  b.node("Transpose", "all_turned", {"a2"}, {"a"}, attrs({{"perm", Ints{0, 2, 1, 3}}}));
  b.node("Add", "sum", {"a", "n"}, {"k"}).constant("last", random({2, 3}, -1, 1, 4));
  b.node("MatMul", "end_product", {"k", "last"}, {"z"});
  expect_native_is_reference(b.build({"z"}), 8);
}

/// Half of integers whose axes were exchanged, as an output, where the other half is read as integers.
void test_part_of_exchanged_axes(void **) {
  GraphBuilder b;
  b.input("x", {1, 4, 6, 2}).constant("w", random({2, 4}, -1, 1, 5)).node("MatMul", "product", {"x", "w"}, {"p"});
  b.node("Transpose", "turn", {"p"}, {"t"}, attrs({{"perm", Ints{0, 1, 3, 2}}}));
  b.constant("halves", ints({2, 2}));
  b.node("Split", "split", {"t", "halves"}, {"first", "second"}, attrs({{"axis", std::int64_t{2}}}));
  b.node("Concat", "join", {"first", "t"}, {"j"}, attrs({{"axis", std::int64_t{2}}}));
  add_conv(b, "conv", "j", "c", {4, 1, 3, 3}, attrs({{"group", std::int64_t{4}}}));
  expect_native_is_reference(b.build({"second", "c"}), 3);
}

/// Four axes, of which the last holds features, are multiplied as they lie.
void test_features_of_four_axes(void **) {
  GraphBuilder b;
  b.input("x", {1, 5, 6, 8});
  b.node("Softmax", "softmax", {"x"}, {"p"}).constant("w", random({8, 7}, -1, 1, 3));
  b.node("MatMul", "product", {"p", "w"}, {"y"});
  const graph::Graph float_graph = b.build({"y"});
  expect_native_is_reference(float_graph, 2);
  const Tensor x = random({1, 5, 6, 8}, -1, 1, 4), *inputs[] = {&x};
  const runtime::Session session(quantized(float_graph, quant::Config("onnx")), {runtime::Engine::native, 1});
  const auto profile = nlohmann::json::parse(session.profile(inputs));
  std::vector<std::string> steps;
  for (const auto &node : profile["nodes"]) steps.push_back(node["op"]);
  assert_true((steps == std::vector<std::string>{"Softmax", "QuantizeLinear", "MatMul"}));
}

void test_residual_and_squeeze_excite(void **) {
  GraphBuilder b;
  b.input("x", {1, 8, 10, 9});
  add_conv(b, "a", "x", "a.y", {8, 8, 3, 3}, attrs({{"pads", Ints{1, 1, 1, 1}}}));
  b.node("HardSwish", "act", {"a.y"}, {"h"});
  b.node("Add", "add", {"h", "x"}, {"s"}).node("Relu", "relu", {"s"}, {"r"});
  b.node("GlobalAveragePool", "gap", {"r"}, {"g"});
  add_conv(b, "squeeze", "g", "q", {4, 8, 1, 1}, {});
  b.node("Sigmoid", "gate", {"q"}, {"q2"});
  add_conv(b, "excite", "q2", "e", {8, 4, 1, 1}, {});
  b.node("HardSigmoid", "hs", {"e"}, {"e2"});
  b.node("Mul", "scale", {"r", "e2"}, {"m"}).node("Sub", "sub", {"m", "x"}, {"d"});
  add_conv(b, "last", "d", "z", {5, 8, 1, 1}, {});
  expect_native_is_reference(b.build({"z"}), 10);
}

void test_pools_and_moves(void **) {
  GraphBuilder b;
  b.input("x", {1, 12, 12, 10});
  add_conv(b, "a", "x", "a.y", {16, 12, 1, 1}, {});
  b.node("MaxPool", "max", {"a.y"}, {"p"},
         attrs({{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}));
  b.constant("parts", ints({6, 10}))
      .node("Split", "split", {"p", "parts"}, {"l", "r"}, attrs({{"axis", std::int64_t{1}}}));
  add_conv(b, "right", "r", "rr", {6, 10, 3, 3}, attrs({{"pads", Ints{1, 1, 1, 1}}}));
  b.node("Concat", "concat", {"l", "rr"}, {"c"}, attrs({{"axis", std::int64_t{1}}}));
  // Channel shuffle, as ShuffleNet writes it.
  b.constant("five", ints({0, 2, 6, 6, 5})).node("Reshape", "fold", {"c", "five"}, {"c5"});
  b.node("Transpose", "swap", {"c5"}, {"t"}, attrs({{"perm", Ints{0, 2, 1, 3, 4}}}));
  b.constant("four", ints({0, -1, 6, 5})).node("Reshape", "unfold", {"t", "four"}, {"u"});
  b.node("AveragePool", "average", {"u"}, {"v"},
         attrs({{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 0, 0, 1}}, {"count_include_pad", std::int64_t{1}}}));
  b.constant("axes", ints({2, 3}))
      .node("ReduceMean", "mean", {"v", "axes"}, {"w"}, attrs({{"keepdims", std::int64_t{0}}}));
  b.constant("fc", random({12, 7}, -1, 1, 5)).constant("fcb", random({7}, -1, 1, 6));
  b.node("Gemm", "gemm", {"w", "fc", "fcb"}, {"k"}).node("Softmax", "softmax", {"k"}, {"z"});
  expect_native_is_reference(b.build({"z"}), 9);
  expect_native_is_reference(b.build({}), 9, "fbgemm");
}

/// The largest of each channel by the kernel of pools, not by the operator's own loop.
void test_global_maximum(void **) {
  for (const Shape &places : {Shape{9}, Shape{6, 5}, Shape{3, 4, 5}}) {
    GraphBuilder b;
    Shape x{1, 5}, w{11, 5};
    for (const std::int64_t length : places) x.push_back(length), w.push_back(1);
    b.input("x", x);
    add_conv(b, "a", "x", "a.y", w, {});
    b.node("GlobalMaxPool", "max", {"a.y"}, {"m"}).node("Flatten", "flat", {"m"}, {"f"});
    b.constant("fc", random({11, 4}, -1, 1, 5)).node("Gemm", "gemm", {"f", "fc"}, {"z"});
    const graph::Graph g = b.build({"z"});
    expect_native_is_reference(g, 3);
    const Tensor sample = random(x, -1, 1, 3);
    const Tensor *inputs[] = {&sample};
    const runtime::Session session(quantized(g), {runtime::Engine::native, 1});
    const auto profile = nlohmann::json::parse(session.profile(inputs));
    std::string kernel;
    for (const auto &node : profile["nodes"])
      if (node["name"] == "max") kernel = node["kernel"];
    if (kernel.empty() || kernel == "GlobalMaxPool") fail_test("the kernel is \"", kernel, "\"");
  }
}

/// Parts that are computed in place, copied because something else reads them too, or used twice; parts of parts.
void test_concat_of_channels(void **) {
  const Attrs channels = attrs({{"axis", std::int64_t{1}}});
  GraphBuilder b;
  b.input("x", {1, 6, 9, 8});
  add_conv(b, "a", "x", "a.y", {5, 6, 1, 1}, {});
  add_conv(b, "b", "x", "b.y", {7, 6, 3, 3}, attrs({{"pads", Ints{1, 1, 1, 1}}}));
  add_conv(b, "dw", "x", "d.y", {6, 1, 3, 3}, attrs({{"pads", Ints{1, 1, 1, 1}}, {"group", std::int64_t{6}}}));
  b.node("MaxPool", "pool", {"d.y"}, {"p"}, attrs({{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}}));
  b.node("Concat", "inner", {"a.y", "p"}, {"i"}, channels);
  b.node("Concat", "outer", {"i", "b.y", "d.y", "d.y"}, {"c"}, channels);
  b.node("Relu", "relu", {"c"}, {"r"});
  add_conv(b, "last", "r", "z", {4, 30, 1, 1}, {});
  expect_native_is_reference(b.build({"z"}), 7);
}

/// All channels and some of them once more, which the step before may write; in another order, from the end, and nearly
/// each for itself.
void test_chosen_channels(void **) {
  const std::vector<std::int64_t> orders[] = {{0, 1, 2, 3, 4, 5, 6, 7, 3, 0, 0, 6},
                                              {4, 5, 6, 7, -8, -7, 2, 3, -1},
                                              {7, 5, 3, 1, 0, 2, 4, 6, 7, 5, 3, 1, 0, 2, 4, 6}};
  for (const std::vector<std::int64_t> &order : orders)
    for (const bool read_again : {false, true}) {
      GraphBuilder b;
      b.input("x", {1, 6, 9, 7}).constant("order", ints(order));
      add_conv(b, "a", "x", "u", {8, 6, 3, 3}, {});
      b.node("Gather", "gather", {"u", "order"}, {"g"}, attrs({{"axis", std::int64_t{1}}}));
      add_conv(b, "b", "g", "y", {5, static_cast<std::int64_t>(order.size()), 3, 3}, {});
      std::vector<std::string> outputs{"y"};
      if (read_again) {
        add_conv(b, "c", "u", "z", {3, 8, 3, 3}, {});
        outputs.emplace_back("z");
      }
      expect_native_is_reference(b.build(outputs), read_again ? 4 : 3);
    }
}

void test_tables_and_choices(void **) {
  GraphBuilder b;
  b.input("x", {1, 8, 6, 4}).constant("two", Tensor::scalar(2)).constant("low", Tensor::scalar(0.1f));
  add_conv(b, "a", "x", "a0", {8, 8, 1, 1}, {});
  std::string last = "a0";
  std::vector<std::string> outputs{"z"};  // what is an output is made by a table of its own
  for (const char *op : {"Gelu", "Elu", "Mish", "Abs", "Sqrt", "Erf", "Neg", "Softplus", "Floor"}) {
    b.node(op, op, {last}, {cat(op, ".y")});
    last = cat(op, ".y");
    outputs.push_back(last);
  }
  b.node("Pow", "pow", {last, "two"}, {"p"}).node("Max", "max", {"p", "low", "a0"}, {"m"});
  add_conv(b, "b", "m", "b0", {8, 8, 1, 1}, {});
  b.node("Greater", "greater", {"a0", "b0"}, {"c"}).node("Where", "where", {"c", "b0", "low"}, {"w"});
  b.node("DepthToSpace", "spread", {"w"}, {"d"}, attrs({{"blocksize", std::int64_t{2}}}));
  b.constant("times", ints({1, 2, 1, 1})).node("Tile", "tile", {"d", "times"}, {"t"});
  b.constant("rows", ints({2})).node("ReduceMin", "least", {"t", "rows"}, {"l"});
  b.node("Min", "min", {"t", "l"}, {"n"});
  add_conv(b, "last", "n", "z", {3, 4, 3, 3}, {});
  expect_native_is_reference(b.build(outputs), 19);
}

/// Whether all products of a plan are of integers.
bool multiplies_integers(const graph::Graph &g, std::span<const Tensor *const> inputs) {
  const auto profile = nlohmann::json::parse(runtime::Session(g, {runtime::Engine::native, 1}).profile(inputs));
  return std::ranges::all_of(profile.at("nodes"), [](const nlohmann::json &node) {
    return node.at("op") != "MatMul" || node.at("dtype") == "int8";
  });
}

/// Products of activations, which are integers where their results have grids by hand: heads, one matrix for all, more
/// than a block of columns or rows, and a right operand that a Transpose only turns, on a grid that is said before it.
void test_products_of_activations(void **) {
  const Attrs by_hand = attrs({{"quantize", std::int64_t{1}}});
  struct Case {
    Shape a, b;
    bool turned;
  };
  for (const Case &c :
       {Case{{2, 3, 7, 40}, {2, 3, 40, 9}, false}, Case{{2, 3, 7, 40}, {2, 3, 9, 40}, true},
        Case{{4, 1, 5, 6}, {3, 6, 1}, false}, Case{{5, 6}, {2, 6, 33}, false}, Case{{1, 1}, {1, 1}, true},
        Case{{3, 130}, {130, 70}, false}, Case{{9, 40, 16}, {9, 16, 40}, false}, Case{{3, 9000}, {9000, 70}, false},
        Case{{200, 64}, {700, 64}, true}})
    for (const char *recipe : {"onnx", "qnnpack", "tflite"})
      for (const bool float_result : {false, true}) {
        GraphBuilder b;
        b.input("x", c.a).input("w", c.b);
        b.node("Sigmoid", "left", {"x"}, {"a"});
        std::string right = "w";
        if (c.turned) {
          Ints perm(c.b.size());
          std::iota(perm.begin(), perm.end(), 0);
          std::swap(perm[perm.size() - 2], perm.back());
          b.node("Transpose", "turn", {"w"}, {"t"}, attrs({{"perm", perm}}));
          right = "t";
        }
        b.node("MatMul", "product", {"a", right}, {"y"}).node("Tanh", "end", {"y"}, {"z"});
        quant::Config config(recipe);
        config.set("tensor:y", &by_hand);
        graph::Graph g = quantized(b.build({"z"}), config);
        const auto node =
            std::find_if(g.nodes.begin(), g.nodes.end(), [](const graph::Node &n) { return n.op == &ops::kMatMul; });
        assert_true(graph::is_8bit_activation(g.value(node->inputs[0]).quantizer));
        assert_true(graph::is_8bit_activation(g.value(node->inputs[1]).quantizer));
        assert_true(graph::is_8bit_activation(g.value(node->outputs[0]).quantizer));
        if (float_result) g.value(node->outputs[0]).quantizer = nullptr;
        if (c.turned) g.value(node->inputs[1]).quantizer = nullptr;
        const Tensor x = random(c.a, -1.2f, 1.7f, 7), w = random(c.b, -1, 1.5f, 8);
        const Tensor *inputs[] = {&x, &w};
        assert_true(multiplies_integers(g, inputs));
        const Tensor want = runtime::Session(g, {runtime::Engine::reference, 1}).run(inputs)[0];
        each_isa([&](const std::string &isa) {
          for (const int threads : {1, 2})
            expect_equal(runtime::Session(g, {runtime::Engine::native, threads}).run(inputs)[0], want,
                         cat(isa, ", ", recipe, ", ", to_string(c.a), " by ", to_string(c.b)));
        });
      }
}

void test_operators_without_kernels(void **) {
  GraphBuilder b;
  b.input("x", {1, 4, 5, 5});
  add_conv(b, "a", "x", "a.y", {4, 4, 1, 1}, {});
  b.constant("up", random({4, 6, 2, 2}, -0.5f, 0.5f, 1)).constant("up.bias", random({6}, -0.5f, 0.5f, 2));
  b.node("ConvTranspose", "up", {"a.y", "up", "up.bias"}, {"u"}, attrs({{"strides", Ints{2, 2}}}));
  b.node("Relu", "relu", {"u"}, {"r"});
  add_conv(b, "b", "r", "b.y", {6, 6, 3, 3}, {});
  b.constant("scale", random({8}, 0.5f, 1.5f, 3)).node("LayerNormalization", "norm", {"b.y", "scale"}, {"n"});
  b.constant("axes", ints({3})).node("ReduceSum", "sum", {"n", "axes"}, {"s"});
  b.node("LogSoftmax", "softmax", {"s"}, {"z"});
  expect_native_is_reference(b.build({"z"}), 2);
}

QuantizerPtr grid(qdtype dtype, double scale, std::int64_t zero_point) {
  return std::make_shared<Quantizer>(dtype, QTN_PER_TENSOR_AFFINE, 0, std::vector{scale}, std::vector{zero_point},
                                     Numerics::onnx);
}

/// A transposed convolution and a sum between quantized values, as a file may have them.
void test_integers_without_kernels(void **) {
  for (const bool float_result : {false, true}) {
    GraphBuilder b;
    b.input("x", {1, 4, 5, 5});
    const auto channels = std::make_shared<Quantizer>(QTN_INT8, QTN_PER_CHANNEL_SYMMETRIC, 1,
                                                      std::vector{0.01, 0.02, 0.03, 0.01, 0.05, 0.02},
                                                      std::vector<std::int64_t>(6), Numerics::onnx);
    const Tensor weight(QTN_INT8, {4, 6, 2, 2}, channels);
    for (std::int64_t i = 0; i < weight.count(); ++i)
      weight.as<std::int8_t>()[i] = static_cast<std::int8_t>(i * 37 % 255 - 127);
    b.constant("w", weight).constant("axes", ints({2}));
    b.node("ConvTranspose", "up", {"x", "w"}, {"u"}, attrs({{"strides", Ints{2, 2}}}));
    b.node("ReduceSum", "sum", {"u", "axes"}, {"s"});
    graph::Graph g = b.build({"s"});
    for (graph::Value &value : g.values) {
      if (value.is_constant() && value.constant.quantized()) value.quantizer = value.constant.quantizer();
      if (value.name == "x") value.quantizer = grid(QTN_UINT8, 0.01, 100);
      if (value.name == "u" && !float_result) value.quantizer = grid(QTN_INT8, 0.05, 3);
      if (value.name == "s") value.quantizer = grid(QTN_UINT8, 0.2, 90);
    }
    const Tensor x = random({1, 4, 5, 5}, -1, 1.5f, 7);
    const Tensor *inputs[] = {&x};
    expect_equal(runtime::Session(g, {runtime::Engine::native, 2}).run(inputs)[0],
                 runtime::Session(g, {runtime::Engine::reference, 1}).run(inputs)[0], "integers");
  }
}

/// A Relu fused into a sum of numbers other than float32.
void test_fused_relu_of_other_numbers(void **) {
  for (const qdtype dtype : {QTN_INT64, QTN_FLOAT64}) {
    GraphBuilder b;
    b.input("x", {2, 3}).node("Add", "add", {"x", "x"}, {"s"}).node("Relu", "relu", {"s"}, {"y"});
    graph::Graph g = b.build({"y"});
    g.value(g.inputs[0]).dtype = dtype;
    graph::run_passes(g, graph::Pipeline::inference);
    assert_int_equal(g.nodes.size(), 1);
    const Tensor x(dtype, {2, 3});
    dispatch(dtype, [&](auto zero) {
      for (int i = 0; i < 6; ++i) x.as<decltype(zero)>()[i] = static_cast<decltype(zero)>(i - 3);
    });
    const Tensor *inputs[] = {&x};
    for (const runtime::Engine engine : {runtime::Engine::reference, runtime::Engine::native}) {
      const Tensor y = runtime::Session(g, {engine, 1}).run(inputs)[0];
      dispatch(dtype, [&](auto zero) {
        for (int i = 0; i < 6; ++i)
          assert_true(y.as<const decltype(zero)>()[i] == static_cast<decltype(zero)>(std::max(0, 2 * (i - 3))));
      });
    }
  }
}

void test_float_islands(void **) {
  // PRelu and Exp of a mixed operand run in float between two integer convolutions.
  GraphBuilder b;
  b.input("x", {1, 4, 6, 6}).constant("slope", random({4, 1, 1}, 0, 0.5f, 3));
  add_conv(b, "a", "x", "y", {4, 4, 3, 3}, {});
  b.node("PRelu", "prelu", {"y", "slope"}, {"p"}).node("Exp", "exp", {"p"}, {"e"});
  add_conv(b, "b", "e", "z", {6, 4, 1, 1}, {});
  expect_native_is_reference(b.build({"z"}), 2);
}

void test_digits(void **) {
  const graph::Graph g = onnx::load(QTN_EXAMPLES_DIR "/digits/digits.onnx");
  graph::Graph fixed = g;
  (*fixed.value(fixed.inputs[0]).shape)[0] = 1;
  expect_native_is_reference(fixed, 10);
}

void test_loaded_file_gives_the_same_bits(void **) {
  const graph::Graph g = onnx::load(QTN_EXAMPLES_DIR "/digits/digits.onnx");
  graph::Graph fixed = g;
  (*fixed.value(fixed.inputs[0]).shape)[0] = 1;
  const graph::Graph converted = quantized(fixed);
  const std::string bytes = onnx::serialize(converted, {});
  const graph::Graph loaded = onnx::parse(std::as_bytes(std::span(bytes.data(), bytes.size())), "");
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Tensor x = random({1, 1, 8, 8}, 0, 1, seed);
    const Tensor *inputs[] = {&x};
    expect_equal(runtime::Session(loaded, {}).run(inputs)[0], runtime::Session(converted, {}).run(inputs)[0], "loaded");
  }
}

/// Images without lines or columns, of which those that are padded to the same size make outputs without any.
void test_images_of_nothing(void **) {
  const auto check = [](const char *op, std::int64_t channels, std::int64_t groups, const char *pads) {
    const bool transposed = op == std::string("ConvTranspose");
    GraphBuilder b;
    b.input("x", {1, channels, 8, 9});
    b.constant("w", random({transposed ? channels : 12, (transposed ? 12 : channels) / groups, 2, 3}, -1, 1, 1));
    b.node(op, "conv", {"x", "w"}, {"y"},
           attrs({{"group", groups}, {"strides", Ints{2, 1}}, {"dilations", Ints{2, 2}}, {"auto_pad", pads}}));
    graph::Graph g = quantized(b.build({"y"}));
    g.value(g.inputs[0]).shape = Shape{-1, channels, -1, -1};
    for (const Shape &shape :
         {Shape{2, channels, 0, 9}, Shape{2, channels, 8, 0}, Shape{2, channels, 0, 0}, Shape{0, channels, 8, 9}}) {
      const Tensor x(QTN_FLOAT32, shape);
      const Tensor *inputs[] = {&x};
      const auto result_of = [&](runtime::Engine engine) -> std::pair<Tensor, std::string> {
        try {
          return {runtime::Session(g, {engine, 1}).run(inputs)[0], ""};
        } catch (const Error &e) {
          return {Tensor(), e.what()};
        }
      };
      const auto got = result_of(runtime::Engine::native), want = result_of(runtime::Engine::reference);
      assert_string_equal(got.second.c_str(), want.second.c_str());
      if (want.second.empty()) expect_equal(got.first, want.first, cat(op, " of ", to_string(shape)));
    }
  };
  for (const char *op : {"Conv", "ConvTranspose"})
    for (const std::int64_t channels : {3, 12})
      for (const std::int64_t groups : {std::int64_t{1}, std::int64_t{3}, channels})
        for (const char *pads : {"VALID", "SAME_UPPER"}) check(op, channels, groups, pads);
}

/// The value is a view of what comes before, the mask is not.
void test_mask_of_dropout(void **) {
  GraphBuilder b;
  b.input("x", {2, 3}).node("Relu", "relu", {"x"}, {"r"}).node("Dropout", "dropout", {"r"}, {"y", "mask"});
  const graph::Graph g = b.build({"y", "mask"});
  const Tensor x = Tensor::from<float>(QTN_FLOAT32, {2, 3}, std::vector{1.0f, -2.0f, 3.0f, 0.5f, 0.0f, -1.0f});
  const Tensor *inputs[] = {&x};
  for (const runtime::Engine engine : {runtime::Engine::reference, runtime::Engine::native}) {
    const std::vector<Tensor> got = runtime::Session(g, {engine, 1}).run(inputs);
    expect_equal(got[0], Tensor::from<float>(QTN_FLOAT32, {2, 3}, std::vector{1.0f, 0.0f, 3.0f, 0.5f, 0.0f, 0.0f}),
                 "y");
    assert_int_equal(got[1].dtype(), QTN_BOOL);
    assert_true(got[1].shape() == x.shape());
    for (std::int64_t i = 0; i < x.count(); ++i) assert_true(got[1].as<bool>()[i]);
  }
}

void test_inputs_that_do_not_fit(void **) {
  GraphBuilder b;
  b.input("x", {1, 3, 4, 4});
  add_conv(b, "a", "x", "y", {2, 3, 1, 1}, {});
  const runtime::Session session(b.build({"y"}), {});
  const Tensor wide = random({1, 3, 4, 5}, 0, 1, 1);
  const Tensor *wrong[] = {&wide};
  expect_error(QTN_ESHAPE, "session: input \"x\" takes 1x3x4x4, not 1x3x4x5", [&] { session.run(wrong); });
  expect_error(QTN_EINVAL, "session: model takes 1 inputs, not 0", [&] { session.run({}); });
  const Tensor whole = Tensor::from_ints(std::vector<std::int64_t>(48));
  const Tensor *integers[] = {&whole};
  expect_error(QTN_EDTYPE, "session: input \"x\" is float32, not int64", [&] { session.run(integers); });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_residuals_that_lie_as_images),
      cmocka_unit_test(test_products_that_are_rounded_in_blocks),
      cmocka_unit_test(test_convolutions),
      cmocka_unit_test(test_kernels_by_weights),
      cmocka_unit_test(test_depthwise),
      cmocka_unit_test(test_depthwise_to_floats),
      cmocka_unit_test(test_rows_beside_images),
      cmocka_unit_test(test_part_of_exchanged_axes),
      cmocka_unit_test(test_features_of_four_axes),
      cmocka_unit_test(test_residual_and_squeeze_excite),
      cmocka_unit_test(test_pools_and_moves),
      cmocka_unit_test(test_global_maximum),
      cmocka_unit_test(test_concat_of_channels),
      cmocka_unit_test(qtn::test::test_chosen_channels),
      cmocka_unit_test(test_tables_and_choices),
      cmocka_unit_test(test_products_of_activations),
      cmocka_unit_test(test_operators_without_kernels),
      cmocka_unit_test(test_integers_without_kernels),
      cmocka_unit_test(test_fused_relu_of_other_numbers),
      cmocka_unit_test(test_float_islands),
      cmocka_unit_test(test_digits),
      cmocka_unit_test(test_loaded_file_gives_the_same_bits),
      cmocka_unit_test(test_images_of_nothing),
      cmocka_unit_test(test_mask_of_dropout),
      cmocka_unit_test(test_inputs_that_do_not_fit),
  };
  return cmocka_run_group_tests_name("runtime.native", tests, nullptr, nullptr);
}
