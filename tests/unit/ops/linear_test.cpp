// SPDX-License-Identifier: Apache-2.0
// linear() beside Gemm, whose sums run in float64: the same bits by another road.
#include "base/cpu.hpp"
#include "base/parallel.hpp"
#include "ops/common/dynamic_quantizer.hpp"
#include "ops/eager.hpp"
#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

void expect_same_bits(const Tensor &got, const Tensor &want, const std::string &what) {
  assert_true(got.shape() == want.shape() && got.dtype() == want.dtype());
  if (std::memcmp(got.data(), want.data(), want.nbytes()) != 0) fail_test(what, ": other bits");
}

/// Gemm of quantized rows; a float bias is added to a float result.
Tensor by_gemm(const Tensor &x, const Tensor &w, const Tensor *bias, const QuantizerPtr &quantizer) {
  const Attrs a = attrs({{"transB", std::int64_t{1}}});
  const Tensor *inputs[] = {&x, &w, bias};
  const bool inside = bias && quantizer;
  const Tensor y = ops::run_quantized_op(*ops::find_op("Gemm"), ops::Call{a, std::span(inputs, inside ? 3 : 2)},
                                         std::span(&quantizer, 1))[0];
  if (!bias || inside) return y;
  for (std::int64_t i = 0; i < y.count(); ++i) y.as<float>()[i] += bias->as<const float>()[i % bias->dim(0)];
  return y;
}

QuantizerPtr weight_grid(std::mt19937 &engine, qdtype dtype, Numerics numerics, bool by_channel, bool centered,
                         std::int64_t channels) {
  std::vector<double> scales;
  std::vector<std::int64_t> zeros;
  for (std::int64_t c = 0; c < (by_channel ? channels : 1); ++c) {
    scales.push_back(0.001 * static_cast<double>(1 + engine() % 50));
    const auto zero = static_cast<std::int64_t>(engine() % 256);
    zeros.push_back(dtype == QTN_INT8 ? (centered ? 0 : zero - 128) : (centered ? 128 : zero));
  }
  return std::make_shared<Quantizer>(dtype, by_channel ? QTN_PER_CHANNEL_AFFINE : QTN_PER_TENSOR_AFFINE, 0, scales,
                                     zeros, numerics);
}

void dynamic_rows(void **) {
  std::mt19937 engine(1);
  for (const Numerics numerics : {Numerics::fbgemm, Numerics::onnx})
    for (const qdtype dtype : {QTN_INT8, QTN_UINT8})
      for (const bool by_channel : {false, true})
        for (const bool centered : {false, true})
          for (const std::int64_t m : {1, 3, 37})
            for (const std::int64_t k : {1, 63, 300}) {
              const std::int64_t n = 1 + static_cast<std::int64_t>(engine() % 70);
              const Tensor x = random_floats(engine, {m, k}), bias = random_floats(engine, {n});
              const Tensor w =
                  random_bytes(engine, {n, k}, weight_grid(engine, dtype, numerics, by_channel, centered, n));
              const Tensor q = quantize(x, ops::dynamic_quantizer("linear", x, numerics));
              const std::string what = cat(m, "x", k, "x", n, " ", dtype_name(dtype));
              expect_same_bits(ops::linear(x, w, &bias, nullptr), by_gemm(q, w, &bias, nullptr), what);
              expect_same_bits(ops::linear(x, w, nullptr, nullptr), by_gemm(q, w, nullptr, nullptr), what);
              const QuantizerPtr y = per_tensor(QTN_INT8, 0.07, -3);
              expect_same_bits(ops::linear(x, w, &bias, y), quantize(by_gemm(q, w, &bias, nullptr), y), what);
            }
}

void quantized_rows(void **) {
  std::mt19937 engine(2);
  for (const qdtype x_type : {QTN_INT8, QTN_UINT8})
    for (const qdtype w_type : {QTN_INT8, QTN_UINT8})
      for (const bool by_channel : {false, true})
        for (const std::int64_t m : {1, 9}) {
          const std::int64_t k = 100, n = 21;
          const Tensor x = random_bytes(engine, {m, k}, per_tensor(x_type, 0.02, 17)),
                       bias = random_floats(engine, {n});
          const Tensor w =
              random_bytes(engine, {n, k}, weight_grid(engine, w_type, Numerics::onnx, by_channel, false, n));
          for (const QuantizerPtr &y : {QuantizerPtr(), per_tensor(QTN_UINT8, 2.5, 90), per_tensor(QTN_INT8, 3, 5),
                                        per_tensor(QTN_INT16, 0.01, 5)})
            expect_same_bits(ops::linear(x, w, &bias, y), by_gemm(x, w, &bias, y), dtype_name(w_type));
        }
}

/// Deep enough for sums that no int32 holds.
void deep_sums_are_exact(void **) {
  for (const std::int64_t depth : {33025, 33026, 70000}) {
    const Tensor x(QTN_FLOAT32, {1, depth}),
        w(QTN_UINT8, {2, depth},
          std::make_shared<Quantizer>(QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, std::vector{1.0},
                                      std::vector<std::int64_t>{0}, Numerics::onnx));
    std::fill_n(x.as<float>(), depth, 255.0f);
    std::fill_n(w.as<std::uint8_t>(), 2 * depth, std::uint8_t{255});
    const Tensor y = ops::linear(x, w, nullptr, nullptr);
    for (int i = 0; i < 2; ++i) assert_true(y.as<const float>()[i] == static_cast<float>(depth * 255 * 255));
  }
}

/// A bias of nearly 2^31 units on top of sums that fit.
void large_biases_are_exact(void **) {
  const Tensor x(QTN_UINT8, {1, 64}, per_tensor(QTN_UINT8, 1e-6, 0)), w(QTN_INT8, {1, 64}, per_tensor(QTN_INT8, 1, 0));
  std::fill_n(x.as<std::uint8_t>(), 64, std::uint8_t{255});
  std::fill_n(w.as<std::int8_t>(), 64, std::int8_t{127});
  const Tensor bias = floats({1}, {2147.4836f});
  const QuantizerPtr y = per_tensor(QTN_UINT8, 10, 0);
  expect_same_bits(ops::linear(x, w, &bias, y), by_gemm(x, w, &bias, y), "bias");
  assert_int_equal(*ops::linear(x, w, &bias, y).as<const std::uint8_t>(), 215);
}

void threads_and_instructions_do_not_change_results(void **) {
  std::mt19937 engine(3);
  const Tensor x = random_floats(engine, {40, 700}), bias = random_floats(engine, {900});
  const Tensor w = random_bytes(engine, {900, 700}, weight_grid(engine, QTN_INT8, Numerics::fbgemm, true, false, 900));
  const Tensor want = ops::linear(x, w, &bias, nullptr);
  const std::string best = isa_name(isa());
  for (const int threads : {1, 4})
    for (const Isa level : {Isa::scalar, Isa::avx2, Isa::avxvnni, Isa::avx512, Isa::avx512vnni, Isa::amx, Isa::neon,
                            Isa::dotprod, Isa::i8mm}) {
      if (!cpu_has(level)) continue;
      const ThreadScope scope(threads);
      set_isa(isa_name(level));
      expect_same_bits(ops::linear(x, w, &bias, nullptr), want, cat(isa_name(level), ", ", threads, " threads"));
      set_isa(best.c_str());
    }
}

/// PyTorch's, ONNX's, NVIDIA's and TensorFlow Lite's, to the bit.
void golden_grids(void **) {
  const nlohmann::json file = golden("quant/dynamic.json");
  std::map<Numerics, int> seen;
  for (const auto &c : file.at("cases")) {
    const auto name = c.at("name").get<std::string>();
    const Tensor x = tensor_of(c.at("x")), want = tensor_of(c.at("q"));
    const bool reduce_range = c.at("reduce_range");
    ChooseOptions options;
    options.numerics = parse_numerics(c.at("numerics"));
    options.reduce_range = reduce_range;
    const QuantizerPtr q = ops::choose_dynamic("linear", want.dtype(), x, options);
    if (q->scales() != std::vector{number(c.at("scale"))}) fail_test(name, ": scale ", q->scales()[0]);
    if (q->zero_point() != c.at("zero_point").get<int>()) fail_test(name, ": zero point ", q->zero_point());
    expect_same_bits(quantize(x, q), want, name);
    ++seen[options.numerics];
    // What linear() gives its input: 7 bits are FBGEMM's alone.
    const bool own = want.dtype() == QTN_UINT8 && reduce_range == (options.numerics == Numerics::fbgemm);
    if (!own || options.numerics == Numerics::nvidia || options.numerics == Numerics::tflite) continue;
    const QuantizerPtr used = ops::dynamic_quantizer("linear", x, options.numerics);
    if (!(*used == *q)) fail_test(name, ": linear has scale ", used->scales()[0]);
  }
  for (const Numerics numerics : {Numerics::fbgemm, Numerics::qnnpack, Numerics::onnx, Numerics::tflite})
    assert_int_equal(seen[numerics], 64);
  assert_true(seen[Numerics::nvidia] >= 32);
}

void values_without_a_scale(void **) {
  const Tensor w(QTN_INT8, {1, 40}, per_tensor(QTN_INT8, 1, 0));
  std::fill_n(w.as<std::int8_t>(), 40, std::int8_t{1});
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()})
    for (const std::size_t at : {0, 17, 39}) {
      const Tensor x = floats({1, 40}, std::vector<float>(40, 1));
      x.as<float>()[at] = bad;
      expect_error(QTN_EINVAL, "NaN or infinity", [&] { ops::linear(x, w, nullptr, nullptr); });
      for (const Numerics numerics :
           {Numerics::fbgemm, Numerics::qnnpack, Numerics::onnx, Numerics::nvidia, Numerics::tflite}) {
        ChooseOptions options;
        options.numerics = numerics;
        expect_error(QTN_EINVAL, "own: x holds NaN or infinity",
                     [&] { ops::choose_dynamic("own", QTN_INT8, x, options); });
      }
    }
}

}  // namespace
}  // namespace qtn

int main() {
  using namespace qtn;
  const CMUnitTest tests[] = {
      cmocka_unit_test(dynamic_rows),
      cmocka_unit_test(quantized_rows),
      cmocka_unit_test(deep_sums_are_exact),
      cmocka_unit_test(large_biases_are_exact),
      cmocka_unit_test(threads_and_instructions_do_not_change_results),
      cmocka_unit_test(golden_grids),
      cmocka_unit_test(values_without_a_scale),
  };
  return cmocka_run_group_tests_name("ops/linear", tests, nullptr, nullptr);
}
