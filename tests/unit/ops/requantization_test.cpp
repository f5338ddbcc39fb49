// SPDX-License-Identifier: Apache-2.0
// Biases in units of products: taken as they are where they are in these units, else the nearest integer, in exact
// arithmetic; and the ranges that a clamp leaves of a grid.
#include "ops/common/requantization.hpp"

#include <limits>

#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;
using ops::Clamp;

QuantizerPtr grid(qdtype dtype, double scale, std::int64_t zero = 0) {
  return std::make_shared<Quantizer>(dtype, QTN_PER_TENSOR_AFFINE, 0, std::vector<double>{scale},
                                     std::vector<std::int64_t>{zero}, Numerics::onnx);
}

Tensor int32s(const std::vector<std::int32_t> &values, const QuantizerPtr &quantizer) {
  const Tensor t(QTN_INT32, Shape{std::ssize(values)}, quantizer);
  std::copy(values.begin(), values.end(), t.as<std::int32_t>());
  return t;
}

using Int32s = std::vector<std::int32_t>;

void expect_bias(const Tensor &bias, double x_scale, double w_scale, const Int32s &want, const char *what) {
  const Int32s got = ops::integer_bias(&bias, *grid(QTN_UINT8, x_scale, 7), *grid(QTN_INT8, w_scale), want.size());
  for (std::size_t i = 0; i < want.size(); ++i)
    if (got[i] != want[i]) fail_test(what, " at ", i, ": ", got[i], ", not ", want[i]);
}

void biases_in_units_stay(void **) {
  // More than float32 holds, so that a way over reals would show.
  const Int32s large = {16777217, -16777219, std::numeric_limits<std::int32_t>::max(), 5};
  expect_bias(int32s(large, grid(QTN_INT32, 0.125)), 0.5, 0.25, large, "in units");
  expect_bias(int32s(large, grid(QTN_INT32, 0.125 * (1 + 9e-7))), 0.5, 0.25, large, "in units, to float32");
  // A millionth more is another unit: the reals of these integers, on the grid of products.
  expect_bias(int32s({1000000, 3}, grid(QTN_INT32, 0.125 * (1 + 4e-6))), 0.5, 0.25, {1000004, 3}, "another unit");
  expect_bias(int32s({10, 3}, grid(QTN_INT32, 0.125, 2)), 0.5, 0.25, {8, 1}, "with a zero point");
  expect_bias(int32s({10, 3}, grid(QTN_INT32, 0.25)), 0.5, 0.25, {20, 6}, "twice the unit");
  expect_bias(int32s({16777217}, grid(QTN_INT32, 0.125)), 0.5, 0.25, {16777217, 16777217, 16777217}, "one for all");
  const auto second =
      std::make_shared<Quantizer>(QTN_INT32, QTN_PER_CHANNEL_AFFINE, 0, std::vector<double>{0.125, 0.25},
                                  std::vector<std::int64_t>{0, 0}, Numerics::onnx);
  expect_bias(int32s({10, 3}, second), 0.5, 0.25, {10, 6}, "another unit in the second channel");
}

void other_biases_are_rounded(void **) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  expect_bias(floats({6}, {0.3125f, 0.1875f, -0.1875f, inf, -inf, std::numeric_limits<float>::quiet_NaN()}), 0.5, 0.25,
              {2, 2, -2, std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::min(), 0},
              "ties to even, saturated");
  expect_bias(floats({1}, {2.f}), 0.5, 0.25, {16, 16}, "one for all");
  const auto none = ops::integer_bias(nullptr, *grid(QTN_UINT8, 1), *grid(QTN_INT8, 1), 3);
  assert_true(none == Int32s({0, 0, 0}));
  const Tensor two = floats({2}, {1, 2});
  expect_error(QTN_ESHAPE, "bias has 2 elements for 3 output channels",
               [&] { ops::integer_bias(&two, *grid(QTN_UINT8, 1), *grid(QTN_INT8, 1), 3); });
}

/// More than are stored in one piece.
void many_results_are_stored(void **) {
  std::vector<float> scaled((3 << 16) + 5);
  for (std::size_t i = 0; i < scaled.size(); ++i) scaled[i] = static_cast<float>(i % 251) - 20;
  const Tensor y(QTN_UINT8, Shape{std::ssize(scaled)}, grid(QTN_UINT8, 0.1, 20));
  ops::store_scaled(y, scaled, nullptr);
  for (std::size_t i = 0; i < scaled.size(); ++i) assert_int_equal(y.as<std::uint8_t>()[i], i % 251);
}

void clamps(void **) {
  const auto expect = [](const QuantizedRange &got, std::int32_t lo, std::int32_t hi) {
    assert_int_equal(got.lo, lo);
    assert_int_equal(got.hi, hi);
  };
  const QuantizerPtr y = grid(QTN_UINT8, 0.1, 20), s = grid(QTN_INT8, 0.1, -20);
  constexpr double inf = std::numeric_limits<double>::infinity();
  const auto clamp = [](double lo, double hi) { return Clamp{static_cast<float>(lo), static_cast<float>(hi)}; };
  const Clamp relu = clamp(0, inf), relu6 = clamp(0, 6), below = clamp(-inf, -1), crossed = clamp(5, -1);
  expect(ops::output_range(*y, nullptr), 0, 255);
  expect(ops::output_range(*s, nullptr), -128, 127);
  expect(ops::output_range(*y, &relu), 20, 255);
  expect(ops::output_range(*y, &relu6), 20, 80);
  expect(ops::output_range(*s, &relu6), -20, 40);
  expect(ops::output_range(*y, &below), 0, 10);
  expect(ops::output_range(*y, &crossed), 10, 10);
  assert_int_equal(ops::output_range(*y, &relu).zero, 20);
}

void multipliers(void **) {
  const QuantizerPtr x = grid(QTN_UINT8, 0.1), y = grid(QTN_UINT8, 0.3);
  const Quantizer w(QTN_INT8, QTN_PER_CHANNEL_SYMMETRIC, 0, {0.2, 0.7}, {0, 0}, Numerics::onnx);
  const std::vector<float> got = ops::conv_multipliers(*x, w, y.get(), 4),
                           real = ops::conv_multipliers(*x, w, nullptr, 2);
  assert_true(got ==
              std::vector<float>({0.1f * 0.2f / 0.3f, 0.1f * 0.7f / 0.3f, 0.1f * 0.2f / 0.3f, 0.1f * 0.7f / 0.3f}));
  assert_true(real == std::vector<float>({0.1f * 0.2f, 0.1f * 0.7f}));
  assert_true(ops::conv_multipliers(*x, *grid(QTN_INT8, 0.2), y.get(), 2) == std::vector<float>(2, 0.1f * 0.2f / 0.3f));
}

void multipliers_beyond_float32(void **) {
  // The product of the scales is, what remains of it is not.
  assert_true(ops::conv_multiplier(1e30f, 1e30f, 1e25f) == 1e35f);
  assert_true(ops::conv_multiplier(1e30f, 1e30f, 1.0f) == std::numeric_limits<float>::max());
  for (const Numerics numerics : {Numerics::onnx, Numerics::fbgemm}) {
    const auto of = [&](double scale) {
      return Quantizer(QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, {scale}, {0}, numerics);
    };
    const float m = ops::mul_multiplier(of(1e30), of(1e30), of(1e25));
    assert_true(std::abs(m / 1e35f - 1) < 1e-6f);
    assert_true(ops::mul_multiplier(of(1e30), of(1e30), of(1)) == std::numeric_limits<float>::max());
  }
}

void kinds(void **) {
  const Tensor x = floats({4}, {0, 1, 2, 3});
  const Tensor q = quantize(x, grid(QTN_INT8, 0.5, -3)), wide = quantize(x, grid(QTN_INT16, 0.5));
  assert_true(ops::is_quantized_8bit(&q));
  assert_false(ops::is_quantized_8bit(&wide));
  assert_false(ops::is_quantized_8bit(&x));
  assert_false(ops::is_quantized_8bit(nullptr));
  const Tensor c = ops::centered(q);
  for (int i = 0; i < 4; ++i) assert_int_equal(c.as<const std::int32_t>()[i], 2 * i);
}

}  // namespace
}  // namespace qtn

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::biases_in_units_stay),
                              cmocka_unit_test(qtn::other_biases_are_rounded),
                              cmocka_unit_test(qtn::many_results_are_stored),
                              cmocka_unit_test(qtn::clamps),
                              cmocka_unit_test(qtn::multipliers),
                              cmocka_unit_test(qtn::multipliers_beyond_float32),
                              cmocka_unit_test(qtn::kinds)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
