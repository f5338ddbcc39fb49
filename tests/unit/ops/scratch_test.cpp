// SPDX-License-Identifier: Apache-2.0
// What operators need while they run counts for the limits, and does not grow with the product of two long axes.
#include "base/limits.hpp"
#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

Tensor filled(qdtype dtype, const Shape &shape) {
  const Tensor t(dtype, shape);
  dispatch(dtype, [&](auto zero) { std::fill_n(t.as<decltype(zero)>(), t.count(), decltype(zero)(1)); });
  return t;
}

Tensor on_grid(const Shape &shape, double scale) {
  return filled(QTN_UINT8, shape)
      .with_quantizer(std::make_shared<Quantizer>(QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, std::vector<double>{scale},
                                                  std::vector<std::int64_t>{0}, Numerics::onnx));
}

template <class Run>
void run_within(std::size_t bytes, const Run &run_it) {
  const Allowance memory(Limit::run_bytes, 0, bytes);
  run_it();
}

/// Ones by ones: place k of y gets as many products as taps lie on x there.
double overlap(std::int64_t k, std::int64_t length) { return static_cast<double>(std::min(k + 1, 2 * length - 1 - k)); }

constexpr std::int64_t kLong = 6000;  // taps, and positions: their products in double take 288 MB
constexpr std::size_t kSome = std::size_t{16} << 20;

void long_transposed_convolutions(void **) {
  const Tensor x = filled(QTN_FLOAT64, {1, 1, kLong}), w = filled(QTN_FLOAT64, {1, 1, kLong});
  run_within(kSome, [&] {
    const Tensor y = run("ConvTranspose", attrs(), {&x, &w})[0];
    for (std::int64_t k = 0; k < y.count(); ++k) assert_true(y.as<const double>()[k] == overlap(k, kLong));
  });
  const Tensor qx = on_grid({1, 1, kLong}, 1), qw = on_grid({1, 1, kLong}, 1);
  run_within(kSome, [&] {
    const Tensor *operands[] = {&qx, &qw};
    const QuantizerPtr none[] = {nullptr};
    const Tensor y = ops::run_quantized_op(*ops::find_op("ConvTranspose"), {{}, operands}, none, nullptr)[0];
    for (std::int64_t k = 0; k < y.count(); ++k) assert_true(y.as<const float>()[k] == overlap(k, kLong));
  });
}

/// Some filters at a time, or some taps of one: 1,100 taps at 1,000 positions are more than a block, 500 are less.
void blocks_of_taps(void **) {
  for (const std::int64_t taps : {500, 1100}) {
    const Tensor x(QTN_FLOAT64, {1, 2, 1000}), w(QTN_FLOAT64, {2, 3, taps});
    for (std::int64_t i = 0; i < x.count(); ++i) x.as<double>()[i] = static_cast<double>(i * 7 % 11 - 5);
    for (std::int64_t i = 0; i < w.count(); ++i) w.as<double>()[i] = static_cast<double>(i * 5 % 13 - 6);
    const Tensor y = run("ConvTranspose", attrs({{"strides", Ints{2}}}), {&x, &w})[0];
    const std::int64_t length = 999 * 2 + taps;
    assert_true((y.shape() == Shape{1, 3, length}));
    std::vector<double> want(static_cast<std::size_t>(3 * length));
    for (std::int64_t c = 0; c < 2; ++c)
      for (std::int64_t f = 0; f < 3; ++f)
        for (std::int64_t tap = 0; tap < taps; ++tap)
          for (std::int64_t i = 0; i < 1000; ++i)
            want[static_cast<std::size_t>(f * length + 2 * i + tap)] +=
                x.as<const double>()[c * 1000 + i] * w.as<const double>()[(c * 3 + f) * taps + tap];
    for (std::int64_t i = 0; i < y.count(); ++i)
      assert_true(y.as<const double>()[i] == want[static_cast<std::size_t>(i)]);
  }
}

/// Columns of samples for all channels: more than all operands and results.
void columns_are_counted(void **) {
  constexpr std::int64_t kChannels = 512, kPlaces = 4096;
  const Tensor x = filled(QTN_FLOAT32, {1, kChannels, 1, kPlaces}), w = filled(QTN_FLOAT32, {1, kChannels, 1, 1}),
               offset(QTN_FLOAT32, {1, 2, 1, kPlaces});
  std::fill_n(offset.as<float>(), offset.count(), 0.0f);
  const auto convolve = [&] {
    const Tensor y = run("DeformConv", attrs(), {&x, &w, &offset})[0];
    for (std::int64_t i = 0; i < y.count(); ++i) assert_true(y.as<const float>()[i] == kChannels);
  };
  constexpr std::size_t kColumns = kChannels * kPlaces * sizeof(float);
  run_within(kColumns + (std::size_t{1} << 20), convolve);
  expect_error(QTN_ENOMEM, {"8388608 bytes", "over the limit run_bytes of 8388607"},
               [&] { run_within(kColumns - 1, convolve); });
}

}  // namespace
}  // namespace qtn

int main() {
  using namespace qtn;
  const CMUnitTest tests[] = {
      cmocka_unit_test(long_transposed_convolutions),
      cmocka_unit_test(blocks_of_taps),
      cmocka_unit_test(columns_are_counted),
  };
  return cmocka_run_group_tests_name("scratch", tests, nullptr, nullptr);
}
