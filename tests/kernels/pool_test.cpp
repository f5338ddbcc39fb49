// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool/pool.hpp"

#include "support.hpp"

namespace qtn::test {
namespace {

using kernels::PoolArgs;
using kernels::PoolKernel;

void check(Random &random, const PoolKernel &kernel, std::size_t windows, std::size_t channels, std::size_t pixels,
           bool full) {
  const std::size_t step = channels + random.in<std::size_t>(0, 5), ldy = channels + random.in<std::size_t>(0, 5);
  const std::size_t row = (pixels - 1) * step + channels;
  Guarded<std::uint8_t> x(windows * row), y((pixels - 1) * ldy + channels);
  random.fill(x.span(), full ? 255 : 0, 255);
  Guarded<const std::uint8_t *> window(windows);
  for (std::size_t w = 0; w < windows; ++w) window[w] = x.data() + w * row;
  const QuantizedRange range = random.range();
  const std::int32_t x_zero = random.zero_point();
  const float multiplier = any_multiplier(random) / static_cast<float>(windows);
  const PoolArgs args{window.data(),
                      windows,
                      pixels,
                      static_cast<std::ptrdiff_t>(step),
                      channels,
                      y.data(),
                      static_cast<std::ptrdiff_t>(ldy),
                      x_zero,
                      multiplier,
                      range};

  std::vector<std::uint8_t> want_max(y.size(), 0xA5), want_average(y.size(), 0xA5);
  for (std::size_t p = 0; p < pixels; ++p)
    for (std::size_t c = 0; c < channels; ++c) {
      std::uint8_t largest = 0;
      std::int64_t sum = 0;
      for (const std::uint8_t *w : window.span()) {
        const std::uint8_t v = w[p * step + c];
        largest = v > largest ? v : largest;
        sum += v - x_zero;
      }
      want_max[p * ldy + c] = largest;
      want_average[p * ldy + c] = naive_requantize(sum, multiplier, range);
    }
  char what[96];
  std::snprintf(what, sizeof what, "windows=%zu channels=%zu pixels=%zu", windows, channels, pixels);
  kernel.max(args);
  expect_result<std::uint8_t>(y, want_max, kernel.name, what);
  kernel.average(args);
  expect_result<std::uint8_t>(y, want_average, kernel.name, what);
}

void test_all_channel_tails(void **) {
  each_kernel(kernels::pool_kernels(), [](const PoolKernel &kernel) {
    Random random(1);
    for (std::size_t channels = 1; channels <= 150; ++channels)
      check(random, kernel, random.in<std::size_t>(1, 12), channels, random.in<std::size_t>(1, 5), false);
  });
}

/// Sums that 16 bits do not hold.
void test_large_windows(void **) {
  each_kernel(kernels::pool_kernels(), [](const PoolKernel &kernel) {
    Random random(2);
    for (std::size_t windows : {49, 255, 256, 257, 258, 512, 513, 3136})
      for (bool full : {false, true}) check(random, kernel, windows, 70, 2, full);
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_all_channel_tails), cmocka_unit_test(test_large_windows)};
  return run_at_both_edges("kernels.pool", tests);
}
