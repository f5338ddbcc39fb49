// SPDX-License-Identifier: Apache-2.0
// Operators that take scales and zero points as inputs: what they refuse, and what no other tool computes.
#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

void refuse(qstatus status, const std::string &text, const char *op, const Attrs &a, const Inputs &inputs) {
  expect_error(status, text, [&] { ops::infer_op(*ops::find_op(op), ops::Call{a, inputs}); });
}

Tensor meta(qdtype dtype, const Shape &shape) { return Tensor::meta(dtype, shape); }

Tensor zero_points(qdtype dtype, const Ints &values) {
  const Tensor t(dtype, {static_cast<std::int64_t>(values.size())});
  dispatch(dtype, [&](auto zero) {
    for (std::size_t i = 0; i < values.size(); ++i) t.as<decltype(zero)>()[i] = static_cast<decltype(zero)>(values[i]);
  });
  return t;
}

Tensor random_plain(std::mt19937 &engine, qdtype dtype, const Shape &shape) {
  return random_bytes(engine, shape, per_tensor(dtype, 1, 0)).with_quantizer(nullptr);
}

void operators_belong_to_a_domain(void **) {
  assert_non_null(ops::find_op("QLinearAdd"));
  assert_non_null(ops::find_op("com.microsoft", "QLinearAdd"));
  assert_null(ops::find_op("", "QLinearAdd"));
  assert_non_null(ops::find_op("", "QLinearConv"));
  assert_null(ops::find_op("com.microsoft", "QLinearConv"));
}

// 33025 products of 255 * 255 fit int32, one more may not; without zero points int8 reaches 128 only.
void sums_that_may_overflow(void **) {
  const auto sums = [](std::int64_t depth, qdtype dtype, bool zeros) {
    const Tensor a = meta(dtype, {1, depth}), b = meta(dtype, {depth, 1}), zero = meta(dtype, {});
    const Inputs inputs = zeros ? Inputs{&a, &b, &zero, &zero} : Inputs{&a, &b};
    const Attrs none = attrs();
    return ops::infer_op(*ops::find_op("MatMulInteger"), {none, inputs})[0].dtype;
  };
  assert_int_equal(sums(33025, QTN_UINT8, false), QTN_INT32);
  expect_error(QTN_EUNSUPPORTED, {"MatMulInteger", "K = 33026", "uint8", "65025", "may overflow int32"},
               [&] { sums(33026, QTN_UINT8, false); });
  assert_int_equal(sums(131071, QTN_INT8, false), QTN_INT32);
  expect_error(QTN_EUNSUPPORTED, "K = 131072", [&] { sums(131072, QTN_INT8, false); });
  expect_error(QTN_EUNSUPPORTED, "K = 33026", [&] { sums(33026, QTN_INT8, true); });

  const Tensor x = meta(QTN_UINT8, {1, 4096, 3, 3}), w = meta(QTN_UINT8, {1, 4096, 3, 3});
  refuse(QTN_EUNSUPPORTED, "ConvInteger: sums of K = 36864 products", "ConvInteger", attrs(), {&x, &w});
}

void largest_sums_are_exact(void **) {
  const std::int64_t depth = 33025;
  const Tensor a(QTN_UINT8, {1, depth}), b(QTN_UINT8, {depth, 1});
  std::fill_n(a.as<std::uint8_t>(), depth, std::uint8_t{255});
  std::fill_n(b.as<std::uint8_t>(), depth, std::uint8_t{255});
  assert_int_equal(*run("MatMulInteger", attrs(), {&a, &b})[0].as<const std::int32_t>(), depth * 255 * 255);
  const Tensor low = zero_points(QTN_UINT8, {0}), high = zero_points(QTN_UINT8, {255});
  std::fill_n(b.as<std::uint8_t>(), depth, std::uint8_t{0});
  assert_int_equal(*run("MatMulInteger", attrs(), {&a, &b, &low, &high})[0].as<const std::int32_t>(),
                   -depth * 255 * 255);
}

// Scales of one element and zero points of many, or the other way round, belong together; the sums are written out.
void weight_zero_points_by_channel(void **) {
  std::mt19937 engine(3);
  const Tensor x = random_plain(engine, QTN_UINT8, {2, 5}), w = random_plain(engine, QTN_INT8, {5, 3});
  const Tensor sx = Tensor::scalar(0.02f), zx = zero_points(QTN_UINT8, {131}), sw = floats({3}, {0.01f, 0.03f, 0.002f}),
               zw = zero_points(QTN_INT8, {-7, 0, 19}), sy = Tensor::scalar(0.05f), zy = zero_points(QTN_UINT8, {100});
  const Tensor sums = run("MatMulInteger", attrs(), {&x, &w, &zx, &zw})[0];
  const Tensor y = run("QLinearMatMul", attrs(), {&x, &sx, &zx, &w, &sw, &zw, &sy, &zy})[0];
  const std::vector<std::int64_t> xs = int_values(x, "x"), ws = int_values(w, "w"), zeros = int_values(zw, "zw");
  for (std::size_t i = 0; i < 6; ++i) {
    std::int64_t sum = 0;
    for (std::size_t k = 0; k < 5; ++k) sum += (xs[i / 3 * 5 + k] - 131) * (ws[k * 3 + i % 3] - zeros[i % 3]);
    assert_int_equal(sums.as<const std::int32_t>()[i], sum);
    const float m = (0.02f * sw.as<const float>()[i % 3]) / 0.05f;
    const float rounded = std::nearbyint(static_cast<float>(sum) * m) + 100;
    assert_int_equal(y.as<const std::uint8_t>()[i],
                     std::clamp<std::int64_t>(static_cast<std::int64_t>(rounded), 0, 255));
  }
  // As a convolution of one pixel.
  const Tensor image = x.reshaped({2, 5, 1, 1});
  const std::int32_t swap[] = {1, 0};
  const Tensor filters = w.permute(swap).to_contiguous().reshaped({3, 5, 1, 1});
  const Tensor conv = run("QLinearConv", attrs(), {&image, &sx, &zx, &filters, &sw, &zw, &sy, &zy})[0];
  expect_equal(conv.reshaped({2, 3}), y, 0, "QLinearConv");
  expect_equal(run("ConvInteger", attrs(), {&image, &filters, &zx, &zw})[0].reshaped({2, 3}), sums, 0, "ConvInteger");
}

// A vector on either side, and matrices on both, which no golden case has.
void products_of_any_rank(void **) {
  std::mt19937 engine(4);
  const Tensor row = random_plain(engine, QTN_UINT8, {4}), stack = random_plain(engine, QTN_UINT8, {2, 4, 3});
  const Tensor zero = zero_points(QTN_UINT8, {99});
  const Tensor y = run("MatMulInteger", attrs(), {&row, &stack, &zero})[0];
  assert_true(y.shape() == (Shape{2, 3}));
  const std::int32_t turn[] = {0, 2, 1};
  const Tensor turned = stack.permute(turn).to_contiguous();
  expect_equal(run("MatMulInteger", attrs(), {&turned, &row, nullptr, &zero})[0], y, 0, "turned");
  const Tensor by_column = zero_points(QTN_UINT8, {1, 2, 3, 4});
  refuse(QTN_ESHAPE, "MatMulInteger: b_zero_point is 4, not one number", "MatMulInteger", attrs(),
         {&turned, &row, nullptr, &by_column});
}

void scales_and_zero_points_must_fit(void **) {
  const Tensor x = meta(QTN_UINT8, {1, 2, 4, 4}), w = meta(QTN_INT8, {3, 2, 3, 3}), s = meta(QTN_FLOAT32, {}),
               zu = meta(QTN_UINT8, {}), zi = meta(QTN_INT8, {}), two = meta(QTN_FLOAT32, {2}),
               wide = meta(QTN_INT32, {}), reals = meta(QTN_FLOAT32, {1, 2, 4, 4});
  const auto conv = [&](qstatus status, const char *text, Inputs inputs) {
    refuse(status, text, "QLinearConv", attrs(), inputs);
  };
  conv(QTN_EDTYPE, "QLinearConv: x is float32, not uint8 or int8", {&reals, &s, &zu, &w, &s, &zi, &s, &zu});
  conv(QTN_EDTYPE, "QLinearConv: x_zero_point is int8, not uint8", {&x, &s, &zi, &w, &s, &zi, &s, &zu});
  conv(QTN_EDTYPE, "QLinearConv: w_scale is int8, not float32", {&x, &s, &zu, &w, &zi, &zi, &s, &zu});
  conv(QTN_ESHAPE, "QLinearConv: x_scale is 2, not one number", {&x, &two, &zu, &w, &s, &zi, &s, &zu});
  conv(QTN_ESHAPE, "QLinearConv: w_scale is 2, not one number or one for each of 3 channels",
       {&x, &s, &zu, &w, &two, &zi, &s, &zu});
  conv(QTN_EDTYPE, "QLinearConv: y_zero_point is int32", {&x, &s, &zu, &w, &s, &zi, &s, &wide});
  conv(QTN_EDTYPE, "QLinearConv: B is float32, not int32", {&x, &s, &zu, &w, &s, &zi, &s, &zu, &two});
  refuse(QTN_EDTYPE, "QLinearAdd: inputs are uint8 and int8", "QLinearAdd", attrs(), {&x, &s, &zu, &w, &s, &zi, &s});

  const Tensor a = meta(QTN_UINT8, {3, 4}), b = meta(QTN_INT8, {4, 5}), c = meta(QTN_INT32, {3, 5});
  refuse(QTN_EUNSUPPORTED, "QGemm: C is 3x5, not one number or one for each of 5 columns", "QGemm", attrs(),
         {&a, &s, &zu, &b, &s, &zi, &c, &s, &zu});
  refuse(QTN_EUNSUPPORTED, "QGemm: alpha is -1", "QGemm", attrs({{"alpha", -1.0}}), {&a, &s, &zu, &b, &s, &zi});
  refuse(QTN_EINVAL, "QGemm: y_scale and y_zero_point", "QGemm", attrs(), {&a, &s, &zu, &b, &s, &zi, nullptr, &s});
  refuse(QTN_ESHAPE, "MatMulIntegerToFloat: bias is 2, not one number for each column of b 4x5", "MatMulIntegerToFloat",
         attrs(), {&a, &b, &s, &s, &zu, &zi, &two});
  const Attrs axis = attrs({{"axis", std::int64_t{0}}});
  refuse(QTN_EINVAL, "QLinearConcat: 4 inputs after", "QLinearConcat", axis, {&s, &zu, &x, &s, &zu, &x});
  refuse(QTN_EUNSUPPORTED, "QLinearGlobalAveragePool: channels_last", "QLinearGlobalAveragePool",
         attrs({{"channels_last", std::int64_t{1}}}), {&x, &s, &zu, &s, &zu});

  const Tensor byte = zero_points(QTN_UINT8, {1}), none = Tensor::scalar(0);
  expect_error(QTN_EINVAL, {"QLinearSigmoid: x", "scale 0"}, [&] {
    run("QLinearSigmoid", attrs(), {&byte, &none, &byte, &none, &byte});
  });
}

// Zero points may be absent, scales may not. ONNX Runtime takes few of these forms.
void absent_inputs(void **) {
  std::mt19937 engine(5);
  const Tensor a = random_plain(engine, QTN_INT8, {2, 3}), b = random_plain(engine, QTN_INT8, {2, 3}),
               s = Tensor::scalar(0.1f), sy = Tensor::scalar(0.17f), zero = zero_points(QTN_INT8, {0});
  expect_equal(run("QLinearAdd", attrs(), {&a, &s, nullptr, &b, &s, nullptr, &sy})[0],
               run("QLinearAdd", attrs(), {&a, &s, &zero, &b, &s, &zero, &sy, &zero})[0], 0, "QLinearAdd");
  expect_equal(run("QLinearLeakyRelu", attrs(), {&a, &s, nullptr, &sy})[0],
               run("QLinearLeakyRelu", attrs(), {&a, &s, &zero, &sy, &zero})[0], 0, "QLinearLeakyRelu");
  refuse(QTN_EINVAL, "QLinearAdd: input y_scale is absent", "QLinearAdd", attrs(), {&a, &s, &zero, &b, &s});
  refuse(QTN_EINVAL, "QLinearMul: input b is absent", "QLinearMul", attrs(), {&a, &s});
  refuse(QTN_EINVAL, "QLinearSigmoid: input y_scale is absent", "QLinearSigmoid", attrs(), {&a, &s, &zero});
  refuse(QTN_EINVAL, "QLinearSigmoid: input 1 is absent", "QLinearSigmoid", attrs(), {&a, nullptr, &zero});
}

void blocks_must_fit(void **) {
  const Tensor a = meta(QTN_FLOAT32, {3, 20}), b = meta(QTN_UINT8, {5, 2, 8}), s = meta(QTN_FLOAT32, {10}),
               zeros = meta(QTN_UINT8, {5}), bias = meta(QTN_FLOAT32, {4}), wide = meta(QTN_UINT16, {5});
  const auto layout = [](std::int64_t n, std::int64_t k, std::int64_t block, std::int64_t bits = 4) {
    return attrs({{"N", n}, {"K", k}, {"block_size", block}, {"bits", bits}});
  };
  const Inputs inputs{&a, &b, &s, &zeros};
  const Attrs fits = layout(5, 20, 16);
  assert_true(ops::infer_op(*ops::find_op("MatMulNBits"), {fits, inputs})[0].shape == (Shape{3, 5}));
  refuse(QTN_EUNSUPPORTED, "MatMulNBits: bits is 3, supported are 2, 4 and 8", "MatMulNBits", layout(5, 20, 16, 3),
         inputs);
  refuse(QTN_EINVAL, "MatMulNBits: N is 5, K is 20, block_size is 0", "MatMulNBits", layout(5, 20, 0), inputs);
  refuse(QTN_EINVAL, "MatMulNBits: N is 0", "MatMulNBits", attrs(), inputs);
  refuse(QTN_ESHAPE, "MatMulNBits: B is 5x2x8, not 5x3x8", "MatMulNBits", layout(5, 33, 16), inputs);
  refuse(QTN_ESHAPE, "MatMulNBits: 80 bytes of zero_points for 5 rows of 2 blocks", "MatMulNBits", fits,
         {&a, &b, &s, &b});
  refuse(QTN_EDTYPE, "MatMulNBits: zero_points is uint16", "MatMulNBits", fits, {&a, &b, &s, &wide});
  refuse(QTN_EDTYPE, "MatMulNBits: g_idx is float32", "MatMulNBits", fits, {&a, &b, &s, nullptr, &s});
  refuse(QTN_ESHAPE, "MatMulNBits: bias is 4", "MatMulNBits", fits, {&a, &b, &s, &zeros, nullptr, &bias});
}

void linear_quantization_must_fit(void **) {
  const Tensor x = meta(QTN_FLOAT32, {2, 6}), s = meta(QTN_FLOAT32, {}), two = meta(QTN_FLOAT32, {2}),
               zero = meta(QTN_INT8, {}), blocks = meta(QTN_FLOAT32, {2, 2}), wide = meta(QTN_INT32, {});
  const auto quantize = [&](qstatus status, const char *text, const Attrs &a, const Inputs &inputs) {
    refuse(status, text, "QuantizeLinear", a, inputs);
  };
  const auto block = [](std::int64_t size) { return attrs({{"axis", std::int64_t{-1}}, {"block_size", size}}); };
  quantize(QTN_ESHAPE, "QuantizeLinear: 2 scales for axis 1 of x 2x6", attrs(), {&x, &two});
  quantize(QTN_ESHAPE, "QuantizeLinear: zero point is scalar, scale 2", attrs({{"axis", std::int64_t{0}}}),
           {&x, &two, &zero});
  quantize(QTN_EINVAL, "axis 2", attrs({{"axis", std::int64_t{2}}}), {&x, &two});
  quantize(QTN_ESHAPE, "QuantizeLinear: scale is 2x2, which without block_size", attrs(), {&x, &blocks});
  quantize(QTN_ESHAPE, "QuantizeLinear: scale is 2x2, blocks of 2 along axis 1 of x 2x6 want 2x3", block(2),
           {&x, &blocks});
  quantize(QTN_EINVAL, "QuantizeLinear: block_size is -1", block(-1), {&x, &blocks});
  quantize(QTN_EUNSUPPORTED, "QuantizeLinear: quantization to int32", attrs(), {&x, &s, &wide});
  quantize(QTN_EDTYPE, "output_dtype is 2 (uint8), the zero point is int8", attrs({{"output_dtype", std::int64_t{2}}}),
           {&x, &s, &zero});
  quantize(QTN_EUNSUPPORTED, "precision 10", attrs({{"precision", std::int64_t{10}}}), {&x, &s});
  // Blocks of 3 to 5 give two to an axis of 6; the last may be short.
  const Attrs four = block(4);
  const Inputs short_block{&x, &blocks};
  assert_true(ops::infer_op(*ops::find_op("QuantizeLinear"), {four, short_block})[0].shape == x.shape());

  refuse(QTN_EDTYPE, "DequantizeLinear: x is float32", "DequantizeLinear", attrs(), {&x, &s});
  refuse(QTN_EDTYPE, "DequantizeLinear: zero point is int8, not int32", "DequantizeLinear", attrs(),
         {&wide, &s, &zero});
  const Tensor sum = zero_points(QTN_INT32, {9}), scale = Tensor::scalar(0.5f), five = zero_points(QTN_INT32, {5});
  expect_error(QTN_EINVAL, "the zero point of int32 is 5, it must be 0", [&] {
    run("DequantizeLinear", attrs(), {&sum, &scale, &five});
  });
}

void ranges_must_be_finite(void **) {
  const Tensor x = floats({2}, {1, std::numeric_limits<float>::infinity()});
  expect_error(QTN_EINVAL, "DynamicQuantizeLinear: x holds NaN or infinity",
               [&] { run("DynamicQuantizeLinear", attrs(), {&x}, 3); });
}

void not_a_number_is_the_zero_point(void **) {
  const Tensor x = floats({2}, {std::numeric_limits<float>::quiet_NaN(), 0}), scale = Tensor::scalar(0.5f),
               none = Tensor::scalar(0.0f), zero = zero_points(QTN_INT8, {-5});
  assert_true(int_values(run("QuantizeLinear", attrs(), {&x, &scale, &zero})[0], "y") == (Ints{-5, -5}));
  expect_error(QTN_EINVAL, "scale 0 at index 0", [&] { run("QuantizeLinear", attrs(), {&x, &none, &zero}); });
}

}  // namespace
}  // namespace qtn

int main() {
  using namespace qtn;
  const CMUnitTest tests[] = {
      cmocka_unit_test(operators_belong_to_a_domain),
      cmocka_unit_test(sums_that_may_overflow),
      cmocka_unit_test(largest_sums_are_exact),
      cmocka_unit_test(weight_zero_points_by_channel),
      cmocka_unit_test(products_of_any_rank),
      cmocka_unit_test(scales_and_zero_points_must_fit),
      cmocka_unit_test(absent_inputs),
      cmocka_unit_test(blocks_must_fit),
      cmocka_unit_test(linear_quantization_must_fit),
      cmocka_unit_test(ranges_must_be_finite),
      cmocka_unit_test(not_a_number_is_the_zero_point),
  };
  return cmocka_run_group_tests_name("ops/qlinear", tests, nullptr, nullptr);
}
