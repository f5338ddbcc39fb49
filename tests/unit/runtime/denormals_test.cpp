// SPDX-License-Identifier: Apache-2.0
// Products of floats take denormals for zero, in every kind of layer, whatever the instruction set and the number of
// threads: the bits are those of the same network with zeros in their place.
#include <atomic>
#include <functional>

#include "base/float_scope.hpp"
#include "support.hpp"

namespace qtn::test {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr float kDenormal = 1e-39f;

/// Weights [rows, ...], of which all of the first row and some of the others have faded to `faded`.
Tensor weights(const Shape &shape, float faded, unsigned seed) {
  Tensor w = random(shape, -1, 1, seed);
  const std::int64_t row = w.count() / shape[0];
  for (std::int64_t i = 0; i < w.count(); ++i)
    if (i < row || i % 3 == 1) w.as<float>()[i] = i % 2 == 0 ? faded : -faded;
  return w;
}

struct Layer {
  const char *name;
  Shape x;
  std::function<void(GraphBuilder &b, float faded)> add;  ///< from x to y
};

Attrs same() { return attrs({{"pads", Ints{1, 1, 1, 1}}}); }

const Layer kLayers[] = {
    {"a convolution of images",
     {2, 5, 19, 17},
     [](GraphBuilder &b, float faded) {
       b.constant("w", weights({24, 5, 3, 3}, faded, 1)).node("Conv", "layer", {"x", "w"}, {"y"}, same());
     }},
    {"a convolution of pixels",
     {2, 40, 9, 7},
     [](GraphBuilder &b, float faded) {
       b.constant("w", weights({24, 40, 1, 1}, faded, 2)).node("Conv", "layer", {"x", "w"}, {"y"});
     }},
    {"a convolution of each channel",
     {2, 24, 19, 17},
     [](GraphBuilder &b, float faded) {
       Attrs depthwise = same();
       depthwise.set("group", std::int64_t{24});
       b.constant("w", weights({24, 1, 3, 3}, faded, 3)).node("Conv", "layer", {"x", "w"}, {"y"}, depthwise);
     }},
    {"a linear layer",
     {9, 70},
     [](GraphBuilder &b, float faded) {
       b.constant("w", weights({24, 70}, faded, 4))
           .node("Gemm", "layer", {"x", "w"}, {"y"}, attrs({{"transB", std::int64_t{1}}}));
     }},
    {"a product of activations",
     {2, 24, 24},
     [](GraphBuilder &b, float faded) {
       b.constant("w", weights({24, 24}, faded, 5)).node("Mul", "fade", {"x", "w"}, {"f"});
       b.node("MatMul", "layer", {"f", "x"}, {"y"});
     }},
    {"attention",
     {1, 2, 6, 24},
     [](GraphBuilder &b, float faded) {
       b.constant("faded", weights({6, 24}, faded, 9)).node("Mul", "fade", {"x", "faded"}, {"f"});
       b.node("Attention", "layer", {"x", "x", "f"}, {"y"});
     }},
    {"attention in its parts",
     {1, 2, 6, 24},
     [](GraphBuilder &b, float faded) {
       b.constant("faded", weights({6, 24}, faded, 9)).node("Mul", "fade", {"x", "faded"}, {"f"});
       b.node("Transpose", "turn", {"x"}, {"t"}, attrs({{"perm", Ints{0, 1, 3, 2}}}));
       b.node("MatMul", "scores", {"x", "t"}, {"s"}).node("Softmax", "shares", {"s"}, {"p"});
       b.node("MatMul", "layer", {"p", "f"}, {"y"});
     }},
    {"a recurrent layer",
     {6, 2, 20},
     [](GraphBuilder &b, float faded) {
       b.constant("w", weights({1, 24, 20}, faded, 6)).constant("r", weights({1, 24, 24}, faded, 7));
       b.node("RNN", "layer", {"x", "w", "r"}, {"y"}, attrs({{"hidden_size", std::int64_t{24}}}));
     }},
};

Tensor run(const Layer &layer, float faded, int threads) {
  GraphBuilder b;
  b.input("x", layer.x);
  layer.add(b, faded);
  const Tensor x = random(layer.x, -1, 1, 8);
  const Tensor *inputs[] = {&x};
  return runtime::Session(b.build({"y"}), {runtime::Engine::native, threads}).run(inputs)[0].to_contiguous();
}

void faded_weights_are_zero(void **) {
  for (const Layer &layer : kLayers) {
    const Tensor want = run(layer, 0, 1);
    each_isa([&](const std::string &isa) {
      for (const int threads : {1, 3})
        expect_equal(run(layer, kDenormal, threads), want, cat(layer.name, ", ", isa, ", ", threads, " threads"));
    });
  }
}

/// What is small and no denormal, nor are its products, stays what it is.
void small_weights_are_not(void **) {
  const Tensor y = run(kLayers[3], 0x1p-118f, 1), zeros = run(kLayers[3], 0, 1);
  std::int64_t differ = 0;
  for (std::int64_t i = 0; i < y.count(); i += 24) differ += y.as<float>()[i] != zeros.as<float>()[i];
  assert_true(differ > 0);
}

/// What an operator only moves, or computes by its definition, keeps them.
void other_operators_keep_them(void **) {
  GraphBuilder b;
  b.input("x", {3}).constant("two", Tensor::scalar(2)).node("Mul", "double", {"x", "two"}, {"y"});
  Tensor x(QTN_FLOAT32, {3});
  for (int i = 0; i < 3; ++i) x.as<float>()[i] = kDenormal * static_cast<float>(i - 1);
  const Tensor *inputs[] = {&x};
  const Tensor y = runtime::Session(b.build({"y"}), {}).run(inputs)[0].to_contiguous();
  for (int i = 0; i < 3; ++i) assert_true(y.as<float>()[i] == 2 * x.as<float>()[i]);
  assert_true(y.as<float>()[2] > 0);
}

/// Threads of the pool do as the one that they work for, and a scope ends as it began.
void scopes_hold_on_all_threads(void **) {
  const ThreadScope three(3);
  volatile float denormal = kDenormal;
  const auto counted = [&] {
    std::atomic<int> zeros = 0;
    parallel_for(64, [&](std::size_t) {
      for (int i = 0; i < 1000; ++i) zeros += denormal * 0.5f == 0;
    });
    return zeros.load();
  };
  assert_int_equal(counted(), 0);
  {
    const FloatScope outer(FloatMode::without_denormals);
    assert_int_equal(counted(), 64000);
    {
      const FloatScope inner(FloatMode::standard);
      assert_int_equal(counted(), 0);
    }
    assert_int_equal(counted(), 64000);
  }
  assert_int_equal(counted(), 0);
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(faded_weights_are_zero), cmocka_unit_test(small_weights_are_not),
                              cmocka_unit_test(other_operators_keep_them),
                              cmocka_unit_test(scopes_hold_on_all_threads)};
  return cmocka_run_group_tests_name("runtime/denormals", tests, nullptr, nullptr);
}
