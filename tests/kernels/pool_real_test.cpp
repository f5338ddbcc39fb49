// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool_real/pool_real.hpp"

#include <cmath>

#include "support.hpp"

namespace qtn::test {
namespace {

using kernels::PoolRealArgs;
using kernels::PoolRealKernel;

void check(Random &random, const PoolRealKernel &kernel, std::size_t taps, std::size_t channels, std::size_t pixels) {
  const std::size_t step = random.in<std::size_t>(0, 100), ldy = channels + random.in<std::size_t>(0, 9);
  Guarded<float> x((pixels - 1) * step + channels + 200), y((pixels - 1) * ldy + channels);
  for (float &v : x.span()) {
    v = random.one_in(3) ? static_cast<float>(random.in(-2, 2)) : random.real(-3, 3);
    if (random.one_in(3)) v = v < 0 ? -0.0f : 0.0f;
  }
  std::vector<const float *> at(taps);
  for (const float *&p : at) p = x.data() + random.in<std::size_t>(0, 200);
  const double share = 1.0 / random.in(1, 60);
  const PoolRealArgs args{
      at.data(), taps, pixels, channels, static_cast<std::ptrdiff_t>(step), y.data(), static_cast<std::ptrdiff_t>(ldy),
      share};
  std::vector<float> want_max(y.size()), want_average;
  std::memset(want_max.data(), 0xA5, want_max.size() * sizeof(float));
  want_average = want_max;
  for (std::size_t p = 0; p < pixels; ++p)
    for (std::size_t c = 0; c < channels; ++c) {
      float best = at[0][p * step + c];
      double sum = 0;
      for (const float *from : at) {
        best = from[p * step + c] > best ? from[p * step + c] : best;
        sum += static_cast<double>(from[p * step + c]);
      }
      want_max[p * ldy + c] = best == 0 ? 0.0f : best;  // 0 has no sign
      want_average[p * ldy + c] = static_cast<float>(sum * share);
    }
  char what[96];
  std::snprintf(what, sizeof what, "taps=%zu channels=%zu pixels=%zu", taps, channels, pixels);
  kernel.max(args);
  expect_result<float>(y, want_max, kernel.name, what);
  kernel.average(args);
  expect_result<float>(y, want_average, kernel.name, what);
}

void test_all_channel_tails(void **) {
  each_kernel(kernels::pool_real_kernels(), [](const PoolRealKernel &kernel) {
    Random random(1);
    for (std::size_t channels = 1; channels <= 150; ++channels)
      check(random, kernel, random.in<std::size_t>(1, 12), channels, random.in<std::size_t>(1, 5));
    for (std::size_t taps : {49, 255, 3136}) check(random, kernel, taps, 70, 2);
  });
}

/// Wherever it is among the taps.
void test_nan_wins(void **) {
  each_kernel(kernels::pool_real_kernels(), [](const PoolRealKernel &kernel) {
    constexpr std::size_t kTaps = 3, kChannels = 37;
    for (std::size_t bad = 0; bad < kTaps; ++bad) {
      std::vector<float> x(kTaps * kChannels, 1.0f), y(kChannels);
      for (std::size_t c = 0; c < kChannels; c += 2) x[bad * kChannels + c] = std::nanf("");
      const float *taps[] = {x.data(), x.data() + kChannels, x.data() + 2 * kChannels};
      const PoolRealArgs args{taps, kTaps, 1, kChannels, 0, y.data(), kChannels, 3};
      for (const auto run : {kernel.max, kernel.average}) {
        run(args);
        for (std::size_t c = 0; c < kChannels; ++c) assert_int_equal(std::isnan(y[c]), c % 2 == 0);
      }
    }
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_all_channel_tails), cmocka_unit_test(test_nan_wins)};
  return run_at_both_edges("kernels.pool_real", tests);
}
