// SPDX-License-Identifier: Apache-2.0
// A plan for inputs of another shape takes what earlier ones have packed, and does not bring weights into order again:
// sequences of tokens have a length of their own each.
#include "../sums.hpp"
#include "base/limits.hpp"
#include "quant/quantize_dynamic.hpp"
#include "support.hpp"

namespace qtn::test {
namespace {

/// Far less than the weights of every network here.
constexpr std::int64_t kLittle = 40 << 10;

/// Lengths for which a session packs weights. Two, since AMX has two orders of them: an image of some widths is read where
/// it lies, in runs that are filled up, and one of others is gathered.
constexpr std::int64_t kSeenBefore[] = {24, 40};

struct LittleForPlans {
  LittleForPlans() { set_limit(Limit::plan_bytes, kLittle); }
  ~LittleForPlans() { set_limit(Limit::plan_bytes, 0); }
  LittleForPlans(const LittleForPlans &) = delete;
  LittleForPlans &operator=(const LittleForPlans &) = delete;
};

Tensor run(const runtime::Session &session, const Tensor &x) {
  const Tensor *inputs[] = {&x};
  return session.run(inputs)[0].to_contiguous();
}

void expect_weights_to_stay(graph::Graph g, const std::string &what) {
  for (std::int64_t &length : *g.value(g.inputs[0]).shape)
    if (length == 24) length = -1;
  each_isa([&](const std::string &isa) {
    const runtime::Session session(g, {runtime::Engine::native, 1});
    for (const std::int64_t length : {24, 40, 31, 33, 22}) {
      Shape shape = *g.value(g.inputs[0]).shape;
      std::ranges::replace(shape, -1, length);
      const Tensor x = random(shape, -1, 1, static_cast<unsigned>(length));
      const Tensor want = run(runtime::Session(g, {runtime::Engine::native, 1}), x);
      if (std::ranges::count(kSeenBefore, length) > 0) {
        run(session, x);
        continue;
      }
      const LittleForPlans limit;
      expect_equal(run(session, x), want, cat(what, " of ", length, ", ", isa));
    }
  });
}

graph::Graph product(const char *op) {
  GraphBuilder b;
  b.input("x", {24, 200}).constant("w", random({200, 300}, -1, 1, 1));
  return b.node(op, "product", {"x", "w"}, {"y"}).build({"y"});
}

graph::Graph convolution(const char *op, const Shape &weight) {
  GraphBuilder b;
  b.input("x", {1, 96, 24, 24}).constant("w", random(weight, -1, 1, 1));
  Attrs pads;
  pads.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  pads.set("strides", std::vector<std::int64_t>{2, 2});
  return b.node(op, "layer", {"x", "w"}, {"y"}, pads).build({"y"});
}

void test_integers(void **) {
  expect_weights_to_stay(quantized(product("MatMul")), "MatMul");
  expect_weights_to_stay(quantized(product("Gemm")), "Gemm");
  expect_weights_to_stay(quantized(convolution("Conv", {64, 96, 3, 3})), "Conv");
  expect_weights_to_stay(quantized(convolution("Conv", {512, 96, 1, 1})), "Conv of single places");
  expect_weights_to_stay(quantized(convolution("ConvTranspose", {96, 64, 3, 3})), "ConvTranspose");
}

void test_dynamic(void **) {
  expect_weights_to_stay(quant::quantize_dynamic(product("MatMul"), quant::Config("onnx"), {}), "dynamic MatMul");
}

void test_floats(void **) {
  expect_weights_to_stay(product("MatMul"), "MatMul of floats");
  expect_weights_to_stay(convolution("Conv", {64, 96, 3, 3}), "Conv of floats");
}

/// Weights, biases and scales that follow from the number of rows are others for each of them, and packed for each.
void test_weights_that_follow_from_shapes(void **) {
  using Ints = std::vector<std::int64_t>;
  struct Layer {
    const char *op;
    Shape x, w, bias;
    Attrs attributes = {};
  };
  const Layer layers[] = {
      {"MatMul", {-1, 40}, {40, 70}, {}},
      {"Gemm", {-1, 40}, {40, 70}, {70}},
      {"Conv", {-1, 6, 9, 7}, {8, 6, 3, 3}, {8}},
      {"Conv", {-1, 6, 9, 7}, {6, 1, 3, 3}, {6}, attrs({{"group", std::int64_t{6}}})},
      {"ConvTranspose", {-1, 6, 5, 4}, {6, 8, 3, 3}, {8}, attrs({{"strides", Ints{2, 2}}})},
      {"GRU", {-1, 2, 5}, {1, 12, 5}, {}, attrs({{"hidden_size", std::int64_t{4}}})},
  };
  for (const Layer &layer : layers) {
    GraphBuilder b;
    b.input("x", layer.x).constant("first", ints({0})).constant("w0", random(layer.w, -1, 1, 1));
    b.node("Shape", "shape", {"x"}, {"s"}).node("Gather", "gather", {"s", "first"}, {"n"});
    b.node("Cast", "cast", {"n"}, {"rows"}, attrs({{"to", std::int64_t{QTN_FLOAT32}}}));
    b.node("Mul", "weights", {"w0", "rows"}, {"w"});
    std::vector<std::string> operands{"x", "w"};
    if (std::string_view(layer.op) == "GRU") b.constant("r", random({1, 12, 4}, -1, 1, 2)), operands.emplace_back("r");
    if (!layer.bias.empty()) {
      b.constant("b0", random(layer.bias, -1, 1, 3)).node("Mul", "biases", {"b0", "rows"}, {"b"});
      operands.emplace_back("b");
    }
    const graph::Graph g = b.node(layer.op, "layer", operands, {"y"}, layer.attributes).build({"y"});
    const runtime::Session session(g, {runtime::Engine::native, 1});
    for (const std::int64_t rows : {3, 1, 24, 2, 3}) {
      Shape shape = layer.x;
      shape[0] = rows;
      const Tensor x = random(shape, -1, 1, static_cast<unsigned>(rows));
      const Tensor want = run(runtime::Session(g, {runtime::Engine::reference, 1}), x);
      if (!equal_but_for_sums(run(session, x), want)) fail_test(layer.op, " of ", rows, " rows is another");
    }
  }
}

/// A plan for a value is for its bits: 1 / -0 is no 1 / 0.
void test_values_by_their_bits(void **) {
  GraphBuilder b;
  b.input("x", {-1}).input("a", {1}).input("shape", {1}, QTN_INT64).constant("one", Tensor::scalar(1));
  b.node("Div", "inverse", {"one", "a"}, {"i"}).node("Reshape", "reshape", {"x", "shape"}, {"r"});
  const graph::Graph g = b.node("Mul", "product", {"r", "i"}, {"y"}).build({"y"});
  const runtime::Session session(g, {runtime::Engine::native, 1});
  const Tensor x = random({4}, 1, 2, 1), all = ints({-1});
  for (const float a : {0.0f, -0.0f, 0.0f, NAN, 2.0f}) {
    const Tensor value = Tensor::from<float>(QTN_FLOAT32, {1}, std::span(&a, 1)), *inputs[] = {&x, &value, &all};
    const Tensor y = session.run(inputs)[0];
    for (std::int64_t i = 0; i < 4; ++i) {
      const float want = x.as<float>()[i] * (1 / a), got = y.as<float>()[i];
      if (std::isnan(want) ? !std::isnan(got) : got != want) fail_test("by ", a, ": ", got, ", want ", want);
    }
  }
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_integers), cmocka_unit_test(test_dynamic),
                              cmocka_unit_test(test_floats), cmocka_unit_test(test_weights_that_follow_from_shapes),
                              cmocka_unit_test(test_values_by_their_bits)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
