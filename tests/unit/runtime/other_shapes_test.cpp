// SPDX-License-Identifier: Apache-2.0
// A plan for inputs of another shape takes what earlier ones have packed, and does not bring weights into order again:
// sequences of tokens have a length of their own each.
#include "base/limits.hpp"
#include "quant/quantize_dynamic.hpp"
#include "support.hpp"

namespace qtn::test {
namespace {

/// Far less than the weights of every network here.
constexpr std::int64_t kLittle = 40 << 10;

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
    for (const std::int64_t length : {24, 31, 40, 33}) {
      Shape shape = *g.value(g.inputs[0]).shape;
      std::ranges::replace(shape, -1, length);
      const Tensor x = random(shape, -1, 1, static_cast<unsigned>(length));
      const Tensor want = run(runtime::Session(g, {runtime::Engine::native, 1}), x);
      if (length == 24) {
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

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_integers), cmocka_unit_test(test_dynamic),
                              cmocka_unit_test(test_floats)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
