// SPDX-License-Identifier: Apache-2.0
// DynamicQuantizeMatMul in files: ONNX's own operators there, one node here, the same bits.
#include <random>

#include "graph/integer.hpp"
#include "graph/pipelines.hpp"
#include "onnx/dynamic_products.hpp"
#include "onnx/messages.hpp"
#include "onnx/own_functions.hpp"
#include "onnx/support.hpp"
#include "ops/common/dynamic_quantizer.hpp"
#include "quant/graph_builder.hpp"

namespace qtn::test {
namespace {

using Operators = std::vector<std::string>;

template <class T>
Tensor random_integers(qdtype dtype, const Shape &shape, unsigned seed) {
  std::mt19937 generator(seed);
  Tensor t(dtype, shape);
  for (std::int64_t i = 0; i < t.count(); ++i) t.as<T>()[i] = static_cast<T>(generator());
  return t;
}

Tensor random_floats(const Shape &shape, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Tensor t(QTN_FLOAT32, shape);
  for (std::int64_t i = 0; i < t.count(); ++i) t.as<float>()[i] = normal(generator);
  return t;
}

/// A product of x [-1, 3, 37] by weights [37, 5].
struct Product {
  qdtype dtype = QTN_INT8;
  Shape scales{5};
  bool zero = false, bias = true;
  Shape bias_shape{5};
  std::optional<ops::Clamp> clamp{};
  ops::OwnGrid grid{};

  graph::Graph build() const {
    GraphBuilder b;
    Tensor s(QTN_FLOAT32, scales);
    for (std::int64_t i = 0; i < s.count(); ++i) s.as<float>()[i] = 0.01f * static_cast<float>(i + 1) / 3;
    const Shape shape{37, 5};
    b.input("x", {-1, 3, 37}).constant("s", s);
    b.constant("w", dtype == QTN_INT8 ? random_integers<std::int8_t>(dtype, shape, 1)
                                      : random_integers<std::uint8_t>(dtype, shape, 1));
    if (zero)
      b.constant("z", dtype == QTN_INT8 ? random_integers<std::int8_t>(dtype, {5}, 2)
                                        : random_integers<std::uint8_t>(dtype, {5}, 2));
    if (bias) b.constant("b", random_floats(bias_shape, 3));
    b.node("DynamicQuantizeMatMul", "product", {"x", "w", "s", zero ? "z" : "", bias ? "b" : ""}, {"y"});
    graph::Graph g = b.build({"y"});
    g.nodes[0].clamp = clamp;
    ops::set_own_grid(g.nodes[0].attrs, grid);
    return g;
  }
};

constexpr ops::OwnGrid kRows{.granularity = ops::Granularity::row};

Operators operators(const graph::Graph &g) {
  Operators names;
  for (const graph::Node &node : g.nodes) names.emplace_back(node.op->name);
  return names;
}

/// In any order.
void expect_operators(Operators got, Operators want) {
  std::sort(got.begin(), got.end());
  std::sort(want.begin(), want.end());
  if (got == want) return;
  std::string text;
  for (const std::string &name : got) text += " " + name;
  fail_test("operators are", text);
}

/// What files call a DynamicQuantizeLinear that gives such grids.
std::string function_of(const ops::OwnGrid &grid) {
  graph::Node node{"x", &ops::kDynamicQuantizeLinear, {}, {}, {}, {}};
  ops::set_own_grid(node.attrs, grid);
  return onnx::function_of(node).value();
}

/// A file's nodes as they lie in it.
Operators operators_in_file(const graph::Graph &g, const onnx::SaveOptions &options) {
  const std::string bytes = onnx::serialize(g, options);
  const onnx::ModelProto model = onnx::read_model({bytes.data(), bytes.size()});
  Operators names;
  for (const onnx::NodeProto &node : onnx::read_graph(*model.graph).nodes) names.push_back(node.domain + node.op);
  return names;
}

Tensor evaluated(const graph::Graph &g, const Tensor &x) { return graph::evaluate(g, std::span(&x, 1))[0]; }

void test_files_give_the_same_bits(void **) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Tensor x = random_floats({2, 3, 37}, 9);
  const Product products[] = {{},
                              {.bias = false},
                              {.scales = {}, .zero = true},
                              {.bias_shape = {1, 5}},
                              {.zero = true, .bias_shape = {1, 1, 1, 5}},
                              {.dtype = QTN_UINT8},
                              {.dtype = QTN_UINT8, .zero = true, .bias = false},
                              {.clamp = ops::Clamp{0, kInfinity}},
                              {.bias = false, .clamp = ops::Clamp{-1, 1}},
                              {.grid = {Numerics::fbgemm}},
                              {.zero = true, .bias = false, .grid = {Numerics::qnnpack}},
                              {.grid = kRows},
                              {.scales = {}, .bias = false, .clamp = ops::Clamp{0, kInfinity}, .grid = kRows}};
  for (const Product &product : products) {
    const graph::Graph g = product.build();
    for (const onnx::Format format : {onnx::Format::qdq, onnx::Format::qoperator}) {
      const onnx::SaveOptions options{.opset = 13, .format = format};
      Operators in_file{"DynamicQuantizeLinear", "MatMulInteger", "Cast", "Mul", "Mul"}, back{"DynamicQuantizeMatMul"};
      for (Operators *names : {&in_file, &back}) {
        if (product.bias) names->emplace_back("Add");
        if (product.clamp) names->emplace_back(product.clamp->lo == 0 ? "Relu" : "Clip");
      }
      const Operators names = operators_in_file(g, options);
      if (product.grid == ops::OwnGrid{}) expect_operators(names, in_file);
      assert_true(std::ranges::none_of(names, [](const std::string &name) { return name.starts_with("qtensor"); }));
      const graph::Graph read = parse(onnx::serialize(g, options));
      expect_operators(operators(read), back);
      if (!equal(evaluated(read, x), evaluated(g, x))) fail_test("other bits come back");
    }
  }
}

/// The same of convolutions, whose numbers for channels broadcast over images in files.
void test_convolutions_in_files(void **) {
  const Tensor x = random_floats({1, 4, 6, 5}, 9);
  for (const bool by_channel : {false, true})
    for (const Numerics numerics : {Numerics::onnx, Numerics::fbgemm}) {
      GraphBuilder b;
      b.input("x", {-1, 4, -1, -1}).constant("w", random_integers<std::int8_t>(QTN_INT8, {6, 2, 3, 3}, 1));
      b.constant("z", random_integers<std::int8_t>(QTN_INT8, by_channel ? Shape{6} : Shape{}, 2));
      b.constant("s", Tensor::from<float>(QTN_FLOAT32, by_channel ? Shape{6} : Shape{},
                                          std::vector<float>(by_channel ? 6 : 1, 0.03f)));
      b.constant("b", random_floats({6}, 3));
      b.node("DynamicQuantizeConv", "conv", {"x", "w", "s", "z", "b"}, {"y"},
             attrs({{"group", std::int64_t{2}}, {"pads", std::vector<std::int64_t>{1, 0, 1, 2}}}));
      graph::Graph g = b.build({"y"});
      g.nodes[0].clamp = ops::Clamp{0, 2};
      ops::set_own_grid(g.nodes[0].attrs, {numerics});
      if (numerics == Numerics::onnx)
        expect_operators(operators_in_file(g, {.opset = 13}),
                         {"DynamicQuantizeLinear", "ConvInteger", "Cast", "Mul", "Mul", "Add", "Clip"});
      const graph::Graph read = parse(onnx::serialize(g, {.opset = 13}));
      expect_operators(operators(read), {"DynamicQuantizeConv", "Add", "Clip"});
      if (!equal(evaluated(read, x), evaluated(g, x))) fail_test("other bits come back");
      graph::Graph fused = read;
      graph::run_passes(fused, graph::Pipeline::execution);
      expect_operators(operators(fused), {"DynamicQuantizeConv"});
      if (!equal(evaluated(fused, x), evaluated(g, x))) fail_test("other bits with the bias inside");
    }
}

/// Addends of other types, of one number, or of more axes than the result has stay what they are.
void test_addends_that_are_no_bias(void **) {
  const Tensor halves = from_plain(random_floats({6, 1, 1}, 3), QTN_FLOAT16);
  for (const Tensor &addend :
       {halves, random_floats({1}, 3), random_floats({1, 1, 6, 1, 1}, 3), random_floats({6}, 3)}) {
    GraphBuilder b;
    b.input("x", {1, 4, 6, 6}).constant("w", random_integers<std::int8_t>(QTN_INT8, {6, 4, 1, 1}, 1));
    b.constant("s", Tensor::scalar(0.1f)).constant("b", addend);
    b.node("DynamicQuantizeConv", "conv", {"x", "w", "s"}, {"c"}).node("Add", "add", {"c", "b"}, {"y"});
    graph::Graph g = b.build({"y"});
    graph::run_passes(g, graph::Pipeline::execution);
    expect_operators(operators(g), {"DynamicQuantizeConv", "Add"});
  }
}

/// What a file says of PyTorch's grids, operator by operator: ties, small and vanishing scales, one-sided ranges.
void test_functions_compute_the_operator(void **) {
  std::mt19937 generator(5);
  std::normal_distribution<float> normal;
  for (const ops::OwnGrid &grid : {ops::OwnGrid{Numerics::fbgemm}, {Numerics::qnnpack}, kRows}) {
    const graph::Graph body = onnx::function_body(function_of(grid));
    Attrs attrs;
    ops::set_own_grid(attrs, grid);
    for (int i = 0; i < 2000; ++i) {
      const float scale =
          i % 3 == 0 ? 1.0f : std::pow(10.0f, static_cast<float>(static_cast<int>(generator() % 78) - 42));
      const float shift = static_cast<float>(static_cast<int>(generator() % 3) - 1) * static_cast<float>(i % 2) * 5;
      Tensor x(QTN_FLOAT32, i % 5 == 0 ? Shape{3, 2, 4} : Shape{i % 7 == 0 ? 2 : 9});
      for (std::int64_t k = 0; k < x.count(); ++k) {
        const float whole = std::round(normal(generator) * 100) / (i % 4 == 0 ? 1.0f : 255.0f);
        x.as<float>()[k] = i % 2 == 0 ? whole * (i % 8 == 0 ? 1.0f : scale) : (normal(generator) + shift) * scale;
      }
      if (i == 0) std::fill_n(x.as<float>(), x.count(), 0.0f);
      const Tensor *inputs[] = {&x};
      const std::vector<Tensor> want = ops::run_op(ops::kDynamicQuantizeLinear, ops::Call{attrs, inputs, 3});
      const std::vector<Tensor> got = graph::evaluate(body, std::span(&x, 1));
      for (std::size_t o = 0; o < want.size(); ++o)
        if (!equal(got[o], want[o])) fail_test(function_of(grid), ", ", i, ": output ", o, " has other bits");
    }
  }
}

/// The same for products of activations: one-sided rows, ties, numbers too small for a scale and too far apart for one.
void test_function_computes_products(void **) {
  std::mt19937 generator(6);
  std::normal_distribution<float> normal;
  const auto numbers = [&](const Shape &shape, int i) {
    Tensor t(QTN_FLOAT32, shape);
    const float scale =
        i % 3 == 0 ? 1.0f : std::pow(10.0f, static_cast<float>(static_cast<int>(generator() % 76) - 40));
    for (std::int64_t k = 0; k < t.count(); ++k) {
      const float v = i % 2 == 0 ? std::round(normal(generator) * 100) / 255.0f : normal(generator);
      t.as<float>()[k] = (i % 5 == 0 ? std::abs(v) : v) * scale;
    }
    return t;
  };
  for (const bool centered : {false, true}) {
    graph::Node node{"y", &ops::kDynamicMatMul, {}, {}, {}, {}};
    if (centered) node.attrs.set("centered", std::int64_t{1});
    const graph::Graph body = onnx::function_body(onnx::function_of(node).value());
    for (int i = 0; i < 500; ++i) {
      const std::int64_t k = 1 + i % 70, n = 1 + i % 33;
      std::array<Tensor, 2> x{numbers({2, 1, 3, k}, i), numbers({3, k, n}, i / 2)};
      if (i == 0) std::fill_n(x[0].as<float>(), x[0].count(), 0.0f);
      if (i == 1) std::fill_n(x[1].as<float>(), x[1].count(), 3e38f), x[1].as<float>()[0] = -3e38f;
      const Tensor *inputs[] = {&x[0], &x[1]};
      const Tensor want = ops::run_op(ops::kDynamicMatMul, ops::Call{node.attrs, inputs, 1})[0];
      const Tensor got = graph::evaluate(body, x)[0];
      if (!equal(got, want)) fail_test(centered ? "centered " : "", "product ", i, " has other bits");
    }
  }
}

/// A function as the nodes of a network.
graph::Graph network_of(const std::string &function) {
  graph::Graph g = onnx::function_body(function);
  for (const graph::ValueId v : g.inputs) {
    g.value(v).dtype = QTN_FLOAT32;
    g.value(v).shape = g.inputs.size() == 1 ? Shape{2, 9} : v == g.inputs[0] ? Shape{2, 4, 9} : Shape{2, 9, 5};
  }
  return g;
}

/// Nodes of a function are what it stands for, other nodes are not.
void test_nodes_of_functions_are_recognized(void **) {
  for (const std::string &function : onnx::function_names()) {
    const char *op = onnx::function_meaning("qtensor", function)->op->name;
    const graph::Graph g = network_of(function);
    graph::Graph whole = parse(onnx::serialize(g, {}));
    expect_operators(operators(whole), {op});
    assert_int_equal(whole.nodes[0].outputs.size(), g.outputs.size());
    std::vector<Tensor> inputs;
    for (const graph::ValueId v : g.inputs) inputs.push_back(random_floats(*g.value(v).shape, 7));
    const std::vector<Tensor> want = graph::evaluate(g, inputs);
    // A number on the way that is read elsewhere stays, too.
    graph::Graph more = g;
    more.outputs.push_back(more.names.find(more.values, "min"));
    more = parse(onnx::serialize(more, {}));
    assert_int_equal(std::ranges::count(operators(more), op), 1);
    assert_true(more.nodes.size() > 1);
    for (const graph::Graph &read : {whole, more}) {
      const std::vector<Tensor> got = graph::evaluate(read, inputs);
      for (std::size_t o = 0; o < want.size(); ++o)
        if (!equal(got[o], want[o])) fail_test(function, ": output ", o, " has other bits");
    }
    // What ends twice has one grid and thus one call, or two products.
    graph::Graph twice = g;
    graph::Node last =
        *std::ranges::find_if(g.nodes, [&](const graph::Node &n) { return n.outputs == std::vector{g.outputs[0]}; });
    last.name = "again";
    graph::Value again;
    again.name = "again";
    last.outputs = {twice.add_value(std::move(again))};
    twice.outputs.push_back(last.outputs[0]);
    twice.nodes.push_back(std::move(last));
    twice = parse(onnx::serialize(twice, {}));
    assert_int_equal(std::ranges::count(operators(twice), op), g.outputs.size() == 1 ? 2 : 1);
    const std::vector<Tensor> both = graph::evaluate(twice, inputs);
    assert_true(equal(both.front(), want[0]) && equal(both.back(), want[0]));
    // One operator, constant or attribute that is another one.
    const auto is_not = [&](const graph::Graph &other, const std::string &what) {
      if (std::ranges::count(operators(parse(onnx::serialize(other, {}))), op) > 0)
        fail_test(function, " with another ", what, " is ", op);
    };
    for (std::size_t v = 0; v < g.values.size(); ++v)
      if (g.values[v].is_constant() && g.values[v].constant.dtype() == QTN_FLOAT32) {
        graph::Graph other = g;
        other.values[v].constant = Tensor::scalar(*g.values[v].constant.as<float>() + 0.5f);
        is_not(other, g.values[v].name);
      }
    for (std::size_t n = 0; n < g.nodes.size(); ++n) {
      graph::Graph other = g;
      if (g.nodes[n].op == &ops::kMul) other.nodes[n].op = &ops::kAdd;
      if (g.nodes[n].op == &ops::kRound) other.nodes[n].op = &ops::kFloor;
      if (g.nodes[n].op == &ops::kReduceMin) other.nodes[n].op = &ops::kReduceMax;
      if (other.nodes[n].op != g.nodes[n].op) is_not(other, g.nodes[n].name);
      const std::int64_t to = g.nodes[n].attrs.get_int("to", 0);
      const graph::ValueId y = g.nodes[n].outputs[0];
      const bool is_read = y == g.outputs[0] || std::ranges::any_of(g.nodes, [y](const graph::Node &reader) {
                             return std::ranges::count(reader.inputs, y) > 0;
                           });
      if (!is_read || (to != QTN_INT8 && to != QTN_UINT8)) continue;
      other.nodes[n].attrs.set("to", std::int64_t{to == QTN_INT8 ? QTN_UINT8 : QTN_INT8});
      is_not(other, cat("type of ", g.nodes[n].name));
    }
  }
}

/// Files of 0.1 call functions, and bring them along.
void test_functions_of_files(void **) {
  for (const std::string &function : onnx::function_names()) {
    ModelText model;
    model.nodes = {{function, {"x"}, {"y"}, "call", "qtensor"}};
    const auto meaning = onnx::function_meaning("qtensor", function);
    if (meaning->op == &ops::kDynamicMatMul) {
      model.nodes[0].inputs = {"x", "x"};
      model.shape = {2, 2};
    } else {
      model.output_type = QTN_UINT8;
    }
    const graph::Graph g = parse(model.bytes());
    expect_operators(operators(g), {meaning->op->name});
    assert_true(onnx::function_of(g.nodes[0]) == function);
  }
}

/// An attribute that ONNX's operators do not have comes from no file, and a product that no function says goes into
/// none.
void test_numerics_are_not_an_attribute_of_files(void **) {
  GraphBuilder deep;
  deep.input("x", {1, graph::kWeightDepth + 1}).constant("s", Tensor::scalar(0.1f));
  deep.constant("w", random_integers<std::int8_t>(QTN_INT8, {graph::kWeightDepth + 1, 1}, 1));
  deep.node("DynamicQuantizeMatMul", "product", {"x", "w", "s"}, {"y"}, attrs({{"numerics", "fbgemm"}}));
  const graph::Graph g = deep.build({"y"});
  expect_error(QTN_EUNSUPPORTED, {"node \"product\" (DynamicQuantizeMatMul)", "fbgemm"},
               [&] { onnx::serialize(g, {}); });
  const Tensor x = random_floats({3}, 1);
  const Tensor *inputs[] = {&x};
  const Attrs other = attrs({{"numerics", "tflite"}});
  expect_error(QTN_EUNSUPPORTED, "numerics tflite are not offered", [&] {
    ops::run_op(ops::kDynamicQuantizeLinear, ops::Call{other, inputs, 3});
  });
}

/// One grid serves all products of an x.
void test_products_share_a_grid(void **) {
  GraphBuilder b;
  b.input("x", {2, 8}).constant("w", random_integers<std::int8_t>(QTN_INT8, {8, 3}, 1));
  b.constant("s", Tensor::scalar(0.1f)).constant("t", Tensor::scalar(0.2f));
  b.node("DynamicQuantizeMatMul", "a", {"x", "w", "s"}, {"u"})
      .node("DynamicQuantizeMatMul", "b", {"x", "w", "t"}, {"v"});
  graph::Graph g = b.build({"u", "v"});
  const Operators names = operators_in_file(g, {});
  assert_int_equal(std::count(names.begin(), names.end(), "DynamicQuantizeLinear"), 1);
  expect_operators(operators(parse(onnx::serialize(g, {}))), {"DynamicQuantizeMatMul", "DynamicQuantizeMatMul"});
  // But for one kind of grid only.
  ops::set_own_grid(g.nodes[1].attrs, {Numerics::fbgemm});
  const Operators both = operators_in_file(g, {});
  assert_int_equal(std::count(both.begin(), both.end(), "DynamicQuantizeLinear"), 1);
  assert_int_equal(std::count(both.begin(), both.end(), "Reciprocal"), 1);  // of PyTorch's grid
  const Tensor x = random_floats({2, 8}, 4);
  const graph::Graph read = parse(onnx::serialize(g, {}));
  expect_operators(operators(read), {"DynamicQuantizeMatMul", "DynamicQuantizeMatMul"});
  for (std::size_t o = 0; o < 2; ++o)
    if (!equal(graph::evaluate(read, std::span(&x, 1))[o], graph::evaluate(g, std::span(&x, 1))[o]))
      fail_test("output ", o, ": other bits come back");
}

/// Sums that a file could not have in int32, and weights that are computed: ONNX Runtime's operator stays.
void test_other_products_stay(void **) {
  GraphBuilder deep;
  deep.input("x", {1, graph::kWeightDepth + 1}).constant("s", Tensor::scalar(0.1f));
  deep.constant("w", random_integers<std::int8_t>(QTN_INT8, {graph::kWeightDepth + 1, 1}, 1));
  deep.node("DynamicQuantizeMatMul", "product", {"x", "w", "s"}, {"y"});
  GraphBuilder computed;
  computed.input("x", {1, 4}).input("k", {4, 2}).constant("s", Tensor::scalar(0.1f));
  computed.node("Cast", "cast", {"k"}, {"w"}, attrs({{"to", std::int64_t{QTN_INT8}}}));
  computed.node("DynamicQuantizeMatMul", "product", {"x", "w", "s"}, {"y"});
  for (GraphBuilder *b : {&deep, &computed})
    assert_string_equal(operators_in_file(b->build({"y"}), {}).back().c_str(), "com.microsoftDynamicQuantizeMatMul");
}

/// Rows by the sums of other columns, or those of their own under another sign, are no product of ours.
void test_only_own_sums_of_columns_are_folded(void **) {
  Product product;
  product.grid = kRows;
  graph::Graph read = parse(onnx::serialize(product.build(), {}));
  expect_operators(operators(read), {"DynamicQuantizeMatMul", "Add"});
  const auto with_sums = [&](std::int32_t change, bool swapped) {
    GraphBuilder b;
    b.input("x", {2, 3}).constant("w", random_integers<std::int8_t>(QTN_INT8, {3, 2}, 1));
    const Tensor w = random_integers<std::int8_t>(QTN_INT8, {3, 2}, 1);
    Tensor sums = onnx::column_sums_of(w, Tensor());
    sums.as<std::int32_t>()[1] += change;
    b.constant("sums", sums).constant("s", Tensor::scalar(0.1f));
    b.node("DynamicQuantizeLinear", "quantize", {"x"}, {"q", "scale", "zero"}, attrs({{"granularity", "row"}}));
    b.node("MatMulInteger", "product", {"q", "w"}, {"p"});
    b.node("Cast", "zeros", {"zero"}, {"z"}, attrs({{"to", std::int64_t{QTN_INT32}}}));
    b.node("Mul", "moved", {"z", "sums"}, {"m"});
    b.node("Sub", "centered", swapped ? std::vector<std::string>{"m", "p"} : std::vector<std::string>{"p", "m"}, {"c"});
    b.node("Cast", "cast", {"c"}, {"real"}, attrs({{"to", std::int64_t{QTN_FLOAT32}}}));
    b.node("Mul", "scales", {"s", "scale"}, {"both"}).node("Mul", "scale_all", {"both", "real"}, {"y"});
    const Operators names = operators(parse(onnx::serialize(b.build({"y"}), {})));
    return std::count(names.begin(), names.end(), "DynamicQuantizeMatMul") == 1;
  };
  assert_true(with_sums(0, false));
  assert_false(with_sums(1, false));
  assert_false(with_sums(0, true));
}

/// The operators of a file that looks like a product, changed in one place.
struct Lookalike {
  float scale = 0.1f;
  bool zero_of_x = true;
  std::string scale_of = "grid_scale";  ///< whose scale the sums are multiplied by
  Shape scales{}, zeros{};

  graph::Graph build() const {
    GraphBuilder b;
    Tensor s(QTN_FLOAT32, scales);
    for (std::int64_t i = 0; i < s.count(); ++i) s.as<float>()[i] = scale * static_cast<float>(i + 1);
    b.input("x", {3, 8}).constant("w", random_integers<std::int8_t>(QTN_INT8, {8, 3}, 1));
    b.constant("s", s).constant("other", Tensor::scalar(0.3f));
    b.constant("zeros", random_integers<std::int8_t>(QTN_INT8, zeros, 2));
    b.node("DynamicQuantizeLinear", "quantize", {"x"}, {"q", "grid_scale", "grid_zero"});
    b.node("MatMulInteger", "product", {"q", "w", zero_of_x ? "grid_zero" : "", "zeros"}, {"sums"});
    b.node("Cast", "cast", {"sums"}, {"real"}, attrs({{"to", std::int64_t{QTN_FLOAT32}}}));
    b.node("Mul", "scales", {"s", scale_of}, {"both"}).node("Mul", "scale", {"both", "real"}, {"y"});
    return b.build({"y", "q"});
  }

  graph::Graph read() const { return parse(onnx::serialize(build(), {})); }
};

void test_only_such_products_are_folded(void **) {
  const auto folds = [](const Lookalike &l) {
    const Operators names = operators(l.read());
    return std::count(names.begin(), names.end(), "DynamicQuantizeMatMul") == 1;
  };
  assert_true(folds({}));  // although the integers are an output, too
  assert_false(folds({.scale = 0}));
  assert_false(folds({.scale = -0.1f}));
  assert_false(folds({.zero_of_x = false}));
  assert_false(folds({.scale_of = "other"}));
  assert_true(folds({.scales = {3}, .zeros = {3}}));
  assert_true(folds({.zeros = {1, 3}}));
  expect_error(QTN_ESHAPE, "node \"product\": MatMulInteger: b_zero_point is 3x1", [&] { folds({.zeros = {3, 1}}); });
}

/// A scale for each row, or with axes that the product may not have, is no scale for each column.
void test_scales_of_other_axes_are_not_folded(void **) {
  const Tensor x = random_floats({3, 8}, 9);
  const std::pair<Shape, bool> shapes[] = {{{}, true},         {{1}, true},        {{3}, true},
                                           {{3, 1}, false},    {{1, 3}, false},    {{1, 1}, false},
                                           {{3, 1, 1}, false}, {{1, 3, 1}, false}, {{1, 1, 3}, false}};
  for (const auto &[scales, folds] : shapes) {
    const Lookalike l{.scales = scales};
    const graph::Graph read = l.read();
    if (std::ranges::count(operators(read), "DynamicQuantizeMatMul") != (folds ? 1 : 0))
      fail_test("scales ", to_string(scales), folds ? " are not folded" : " are folded");
    if (!equal(evaluated(read, x), evaluated(l.build(), x)))
      fail_test("scales ", to_string(scales), " give other bits");
  }
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::test::test_files_give_the_same_bits),
      cmocka_unit_test(qtn::test::test_convolutions_in_files),
      cmocka_unit_test(qtn::test::test_addends_that_are_no_bias),
      cmocka_unit_test(qtn::test::test_functions_compute_the_operator),
      cmocka_unit_test(qtn::test::test_function_computes_products),
      cmocka_unit_test(qtn::test::test_nodes_of_functions_are_recognized),
      cmocka_unit_test(qtn::test::test_functions_of_files),
      cmocka_unit_test(qtn::test::test_numerics_are_not_an_attribute_of_files),
      cmocka_unit_test(qtn::test::test_products_share_a_grid),
      cmocka_unit_test(qtn::test::test_other_products_stay),
      cmocka_unit_test(qtn::test::test_only_such_products_are_folded),
      cmocka_unit_test(qtn::test::test_scales_of_other_axes_are_not_folded),
      cmocka_unit_test(qtn::test::test_only_own_sums_of_columns_are_folded),
  };
  return cmocka_run_group_tests_name("onnx/dynamic", tests, nullptr, nullptr);
}
