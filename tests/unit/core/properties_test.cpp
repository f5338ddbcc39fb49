// SPDX-License-Identifier: Apache-2.0
// What holds for every quantizer, on random quantizers, shapes and values.
#include <algorithm>
#include <cmath>
#include <random>

#include "check.hpp"
#include "core/scales.hpp"
#include "folder.hpp"
#include "io/safetensors.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

constexpr qdtype kDtypes[] = {QTN_UINT8, QTN_INT8, QTN_UINT16, QTN_INT16, QTN_INT32,
                              QTN_UINT4, QTN_INT4, QTN_UINT2,  QTN_INT2};
constexpr Numerics kNumerics[] = {Numerics::fbgemm, Numerics::qnnpack, Numerics::onnx, Numerics::tflite};
constexpr int kRounds = 400;

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::int64_t below(std::int64_t n) { return std::uniform_int_distribution<std::int64_t>(0, n - 1)(engine_); }
  std::int64_t within(const IntegerRange &r) {
    return std::uniform_int_distribution<std::int64_t>(r.lo, r.hi)(engine_);
  }
  double real(double lo, double hi) { return std::uniform_real_distribution<double>(lo, hi)(engine_); }

  Shape shape() {
    Shape s;
    for (std::int64_t rank = 1 + below(4); rank > 0; --rank) s.push_back(1 + below(6));
    return s;
  }
  Tensor values(const Shape &shape, double reach) {
    const Tensor t(QTN_FLOAT32, shape);
    for (std::int64_t i = 0; i < t.count(); ++i) t.as<float>()[i] = static_cast<float>(real(-reach, reach));
    return t;
  }
  /// Any scheme over a tensor of this shape.
  QuantizerPtr quantizer(const Shape &shape) {
    const qdtype dtype = kDtypes[below(std::size(kDtypes))];
    const qscheme scheme = std::array{QTN_PER_TENSOR_AFFINE, QTN_PER_CHANNEL_AFFINE,
                                      QTN_PER_BLOCK_AFFINE}[static_cast<std::size_t>(below(3))];
    const auto rank = static_cast<std::int64_t>(shape.size());
    const std::int64_t axis = below(2 * rank) - rank;
    const std::int64_t dim = shape[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)];
    const std::int64_t block = is_per_block(scheme) ? 1 + below(4) : 0;
    std::int64_t count = 1;
    if (is_per_channel(scheme)) count = dim;
    if (is_per_block(scheme)) count = element_count(shape) / dim * ((dim + block - 1) / block);
    std::vector<double> scales;
    Ints zeros;
    for (std::int64_t i = 0; i < count; ++i) {
      scales.push_back(static_cast<double>(static_cast<float>(std::exp2(real(-6, 2)))));
      zeros.push_back(dtype == QTN_INT32 ? below(200) - 100 : within(integer_range(dtype)));
    }
    return std::make_shared<Quantizer>(dtype, scheme, static_cast<std::int32_t>(axis), scales, zeros,
                                       kNumerics[below(std::size(kNumerics))], block);
  }

 private:
  std::mt19937 engine_;
};

/// The number of the scale of each element, in logical order, straight from the definition.
std::vector<std::size_t> scale_numbers(const Quantizer &q, const Shape &shape) {
  const auto axis = q.per_tensor() ? 0 : normalize_axis(q.axis(), shape.size(), "test");
  std::vector<std::size_t> numbers;
  for (std::int64_t i = 0; i < element_count(shape); ++i) {
    std::int64_t rest = i, number = 0, step = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      const std::int64_t index = rest % shape[d];
      rest /= shape[d];
      if (q.per_channel() && d == axis) number = index;
      if (!q.per_block()) continue;
      number += step * (d == axis ? index / q.block_size() : index);
      step *= d == axis ? (shape[d] + q.block_size() - 1) / q.block_size() : shape[d];
    }
    numbers.push_back(static_cast<std::size_t>(number));
  }
  return numbers;
}

/// Every scheme is its definition, element by element; errors stay within half a step inside of the range.
void each_element_by_its_scale(void **) {
  Random random(1);
  for (int round = 0; round < kRounds; ++round) {
    const Shape shape = random.shape();
    const QuantizerPtr q = random.quantizer(shape);
    const Tensor x = random.values(shape, 40);
    const Tensor quantized = quantize(x, q), real = dequantize(quantized);
    const Ints integers = int_values(quantized, "q");
    const std::vector<std::size_t> numbers = scale_numbers(*q, shape);
    for (std::size_t i = 0; i < integers.size(); ++i) {
      const float v = x.as<const float>()[i], back = real.as<const float>()[i];
      assert_int_equal(integers[i], q->quantize(v, numbers[i]));
      assert_true(back == q->dequantize(integers[i], numbers[i]));
      const double scale = q->scales()[numbers[i]];
      const bool inside = integers[i] > q->range().lo && integers[i] < q->range().hi;
      // Reciprocal, product and product back are each rounded to float32.
      const double bound = scale / 2 + 4 * 0x1p-24 * std::abs(static_cast<double>(v));
      if (inside && std::abs(static_cast<double>(back) - static_cast<double>(v)) > bound)
        fail_test("quantized ", v, " comes back as ", back, " with scale ", scale);
    }
  }
}

void zero_is_exact_and_order_is_kept(void **) {
  Random random(2);
  for (int round = 0; round < kRounds; ++round) {
    const QuantizerPtr q = random.quantizer({1});
    assert_int_equal(q->quantize(0.0f), q->zero_points()[0]);
    assert_true(q->dequantize(q->zero_points()[0]) == 0.0f);
    assert_int_equal(q->quantize(NAN), q->zero_points()[0]);
    assert_int_equal(q->quantize(INFINITY), q->range().hi);
    assert_int_equal(q->quantize(-INFINITY), q->range().lo);
    const auto a = static_cast<float>(random.real(-100, 100)), b = static_cast<float>(random.real(-100, 100));
    assert_true(q->quantize(std::min(a, b)) <= q->quantize(std::max(a, b)));
  }
}

/// Whatever a view shows is what the same view of the dequantized values shows.
void views_take_their_scales_along(void **) {
  Random random(3);
  for (int round = 0; round < kRounds; ++round) {
    const Shape shape = random.shape();
    const QuantizerPtr quantizer = random.quantizer(shape);
    Tensor q = quantize(random.values(shape, 40), quantizer), x = dequantize(q);
    for (int step = 0; step < 3; ++step) {
      const auto rank = static_cast<std::int64_t>(q.rank());
      const std::int64_t kind = random.below(3);
      if (kind == 0 && rank > 0) {
        const std::int64_t axis = random.below(rank), index = random.below(q.dim(static_cast<std::size_t>(axis)));
        q = q.select(axis, index);
        x = x.select(axis, index);
      } else if (kind == 1 && rank > 0) {
        const std::int64_t axis = random.below(rank), size = q.dim(static_cast<std::size_t>(axis));
        const std::int64_t start = random.below(size), stop = start + 1 + random.below(size - start);
        const std::int64_t by = 1 + random.below(2);
        q = q.slice(axis, start, stop, by);
        x = x.slice(axis, start, stop, by);
      } else {
        std::vector<std::int32_t> axes;
        for (std::int32_t i = 0; i < rank; ++i) axes.insert(axes.begin() + random.below(i + 1), i);
        q = q.permute(axes);
        x = x.permute(axes);
      }
      check_quantizer_fits(*q.quantizer(), q.shape());
      assert_true(equal(dequantize(q), x));
      assert_true(equal(dequantize(q.to_contiguous()), x));
      assert_true(equal(q.clone(), q));
    }
  }
}

void reshape_keeps_values_or_says_why_not(void **) {
  const auto channels = std::make_shared<Quantizer>(QTN_INT8, QTN_PER_CHANNEL_AFFINE, 1, std::vector{0.5, 1.0, 2.0},
                                                    Ints{0, 1, 2}, Numerics::fbgemm);
  Random random(4);
  const Tensor q = quantize(random.values({2, 3, 4}, 40), channels);
  assert_true(equal(dequantize(q.reshape({2, 3, 2, 2})), dequantize(q).reshape({2, 3, 2, 2})));
  assert_true(equal(dequantize(q.reshape({1, 2, 3, 4})), dequantize(q).reshape({1, 2, 3, 4})));
  assert_int_equal(q.reshape({1, 2, 3, 4}).quantizer()->axis(), 2);
  expect_error(QTN_ESHAPE, {"2x3x4", "6x4", "axis 1"}, [&] { q.reshape({6, 4}); });
  expect_error(QTN_ESHAPE, {"24 elements", "25"}, [&] { q.reshape({5, 5}); });
}

void files_give_back_what_they_were_given(void **) {
  Random random(5);
  const TemporaryFolder folder;
  const std::string path = folder.file("t.safetensors");
  for (int round = 0; round < kRounds / 4; ++round) {
    const Shape shape = random.shape();
    const Tensor q = quantize(random.values(shape, 40), random.quantizer(shape));
    io::save_safetensors(path, {{{"t", &q}}});
    const io::TensorFile file = io::open_safetensors(path);
    assert_true(equal(file.read(file.only()), q));
  }
}

void bad_grids(void **) {
  const auto make = [](qscheme scheme, std::int64_t block, std::optional<IntegerRange> range, std::int64_t zero = 0) {
    return [=] { Quantizer(QTN_INT8, scheme, 0, {1.0}, {zero}, Numerics::fbgemm, block, range); };
  };
  expect_error(QTN_EINVAL, "block size 0", make(QTN_PER_BLOCK_AFFINE, 0, {}));
  expect_error(QTN_EINVAL, "block size 4", make(QTN_PER_TENSOR_AFFINE, 4, {}));
  expect_error(QTN_EINVAL, {"[-200, 7]", "[-128, 127]"}, make(QTN_PER_TENSOR_AFFINE, 0, IntegerRange{-200, 7}));
  expect_error(QTN_EINVAL, {"zero_point 9", "[0, 7]"}, make(QTN_PER_TENSOR_AFFINE, 0, IntegerRange{0, 7}, 9));
  expect_error(QTN_EUNSUPPORTED, {"nvidia", "zero_point 3"},
               [] { Quantizer(QTN_INT8, QTN_PER_TENSOR_AFFINE, 0, {1.0}, {3}, Numerics::nvidia); });
  const auto blocks = std::make_shared<Quantizer>(QTN_INT8, QTN_PER_BLOCK_AFFINE, 1, std::vector{1.0, 2.0}, Ints{0, 0},
                                                  Numerics::onnx, 4);
  expect_error(QTN_ESHAPE, {"2 scales", "6 blocks of 4", "3x8"}, [&] {
    quantize(floats({3, 8}, std::vector<float>(24)), blocks);
  });
}

}  // namespace
}  // namespace qtn

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::each_element_by_its_scale),
                              cmocka_unit_test(qtn::zero_is_exact_and_order_is_kept),
                              cmocka_unit_test(qtn::views_take_their_scales_along),
                              cmocka_unit_test(qtn::reshape_keeps_values_or_says_why_not),
                              cmocka_unit_test(qtn::files_give_back_what_they_were_given),
                              cmocka_unit_test(qtn::bad_grids)};
  return cmocka_run_group_tests_name("core/properties", tests, nullptr, nullptr);
}
