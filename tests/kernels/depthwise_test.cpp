// SPDX-License-Identifier: Apache-2.0
#include "kernels/depthwise/depthwise.hpp"

#include "support.hpp"

namespace qtn::test {
namespace {

using kernels::DepthwiseArgs;
using kernels::DepthwiseKernel;

/// How the taps lie: unrelated rows, or windows of a picture, where neighbouring pixels share taps.
enum class Geometry { scattered, window_stride1, window_stride2 };

struct Case {
  std::size_t side, taps, channels, pixels, ldy;
  Guarded<std::uint8_t> x;
  std::vector<const std::uint8_t *> tap;
  std::ptrdiff_t step;
  std::vector<std::int8_t> w;
  std::vector<std::int32_t> bias;
  std::vector<float> multiplier;
  QuantizedRange range;
  std::vector<std::uint8_t> want;

  /// Bytes of the picture or of the scattered rows.
  static std::size_t input_size(Geometry g, std::size_t side, std::size_t taps, std::size_t channels,
                                std::size_t pixels) {
    if (g == Geometry::scattered) return taps * pixels * channels;
    const std::size_t stride = g == Geometry::window_stride2 ? 2 : 1;
    return side * ((pixels - 1) * stride + side) * channels;
  }

  Case(Random &random, Geometry g, std::size_t window, std::size_t c, std::size_t p, bool extremes)
      : side(window),
        taps(window * window),
        channels(c),
        pixels(p),
        ldy(c + random.in<std::size_t>(0, 20)),
        x(input_size(g, window, taps, c, p), kReadSlack),
        w(taps * c),
        bias(c),
        multiplier(c),
        range(random.range()) {
    random.fill(x.span(), 0, 255);
    random.fill(std::span(w), -128, 127);
    if (extremes) {
      std::memset(x.data(), 255, x.size());
      for (std::int8_t &v : w) v = random.one_in(2) ? 127 : -128;
    }
    random.fill(std::span(bias), -20000, 20000);
    for (float &v : multiplier) v = any_multiplier(random);
    const std::size_t stride = g == Geometry::window_stride2 ? 2 : 1, width = (pixels - 1) * stride + side;
    step = static_cast<std::ptrdiff_t>(stride * channels);
    for (std::size_t t = 0; t < taps; ++t)
      tap.push_back(g == Geometry::scattered ? x.data() + t * pixels * channels
                                             : x.data() + (t / side * width + t % side) * channels);
    want.assign((pixels - 1) * ldy + channels, 0xA5);
    for (std::size_t i = 0; i < pixels; ++i)
      for (std::size_t j = 0; j < channels; ++j) {
        std::int64_t acc = bias[j];
        for (std::size_t t = 0; t < taps; ++t)
          acc += std::int64_t{tap[t][static_cast<std::ptrdiff_t>(i) * step + static_cast<std::ptrdiff_t>(j)]} *
                 w[t * channels + j];
        want[i * ldy + j] = naive_requantize(acc, multiplier[j], range);
      }
  }

  void check(const DepthwiseKernel &kernel) const {
    AlignedBuffer packed(kernel.packed_bytes(taps, channels));
    kernel.pack(packed.data(), {w.data(), bias.data(), multiplier.data(), taps, channels});
    Guarded<std::uint8_t> y(want.size());
    kernel.run(
        {tap.data(), taps, pixels, step, channels, packed.data(), y.data(), static_cast<std::ptrdiff_t>(ldy), range});
    char what[96];
    std::snprintf(what, sizeof what, "window=%zu channels=%zu pixels=%zu step=%td ldy=%zu", side, channels, pixels,
                  step, ldy);
    expect_same<std::uint8_t>(y.span(), want, kernel.name, what);
  }
};

constexpr Geometry kGeometries[] = {Geometry::scattered, Geometry::window_stride1, Geometry::window_stride2};

void test_all_channel_tails(void **) {
  each_kernel(kernels::depthwise_kernels(), [](const DepthwiseKernel &kernel) {
    Random random(1);
    for (std::size_t channels = 1; channels <= 150; ++channels)
      for (Geometry g : kGeometries) Case(random, g, 3, channels, random.in<std::size_t>(1, 12), false).check(kernel);
  });
}

void test_all_pixel_tails(void **) {
  each_kernel(kernels::depthwise_kernels(), [](const DepthwiseKernel &kernel) {
    Random random(2);
    for (std::size_t pixels = 1; pixels <= 20; ++pixels)
      for (std::size_t channels : {16, 32, 64, 144})
        for (Geometry g : kGeometries) Case(random, g, 3, channels, pixels, false).check(kernel);
  });
}

void test_windows(void **) {
  each_kernel(kernels::depthwise_kernels(), [](const DepthwiseKernel &kernel) {
    Random random(3);
    for (std::size_t window = 1; window <= 7; ++window)
      for (Geometry g : kGeometries)
        for (int i = 0; i < 8; ++i)
          Case(random, g, window, random.in<std::size_t>(1, 200), random.in<std::size_t>(1, 15), false).check(kernel);
  });
}

void test_saturation_vectors(void **) {
  each_kernel(kernels::depthwise_kernels(), [](const DepthwiseKernel &kernel) {
    Random random(4);
    for (Geometry g : kGeometries)
      for (std::size_t window : {3, 5}) Case(random, g, window, 80, 9, true).check(kernel);
  });
}

/// Taps outside the picture are a row of zero points that every pixel of a run of one reads.
void test_border_pixel(void **) {
  each_kernel(kernels::depthwise_kernels(), [](const DepthwiseKernel &kernel) {
    Random random(5);
    for (std::size_t channels : {8, 24, 100}) {
      Case c(random, Geometry::scattered, 3, channels, 1, false);
      const std::vector<std::uint8_t> padding(channels + kReadSlack, 7);
      c.tap[0] = c.tap[3] = padding.data();
      for (std::size_t j = 0; j < channels; ++j) {
        std::int64_t acc = c.bias[j];
        for (std::size_t t = 0; t < 9; ++t) acc += std::int64_t{c.tap[t][j]} * c.w[t * channels + j];
        c.want[j] = naive_requantize(acc, c.multiplier[j], c.range);
      }
      c.check(kernel);
    }
  });
}

void test_no_pixels(void **) {
  each_kernel(kernels::depthwise_kernels(), [](const DepthwiseKernel &kernel) {
    Random random(6);
    const Case c(random, Geometry::window_stride1, 3, 20, 1, false);
    AlignedBuffer packed(kernel.packed_bytes(9, 20));
    kernel.pack(packed.data(), {c.w.data(), c.bias.data(), c.multiplier.data(), 9, 20});
    kernel.run({c.tap.data(), 9, 0, c.step, 20, packed.data(), nullptr, 20, c.range});
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_all_channel_tails), cmocka_unit_test(test_all_pixel_tails),
      cmocka_unit_test(test_windows),           cmocka_unit_test(test_saturation_vectors),
      cmocka_unit_test(test_border_pixel),      cmocka_unit_test(test_no_pixels),
  };
  return cmocka_run_group_tests_name("kernels.depthwise", tests, nullptr, nullptr);
}
