// SPDX-License-Identifier: Apache-2.0
#include "kernels/real/real.hpp"

#include <algorithm>

#include "support.hpp"

namespace qtn::test {
namespace {

using kernels::Extent;
using kernels::RealKernel;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

void check_taps(Random &random, const RealKernel &kernel, std::size_t count) {
  const std::size_t taps = random.in<std::size_t>(0, 12), reach = random.in<std::size_t>(0, 40);
  std::vector<std::ptrdiff_t> offsets;
  std::vector<float> weights;
  for (std::size_t t = 0; t < taps; ++t) {
    offsets.push_back(random.in<std::ptrdiff_t>(0, static_cast<std::int64_t>(reach)));
    weights.push_back(random.real(-2, 2));
  }
  Guarded<float> x(count + (taps ? static_cast<std::size_t>(*std::max_element(offsets.begin(), offsets.end())) : 0));
  for (float &v : x.span()) v = random.real(-10, 10);
  const float begin = random.real(-1, 1);
  std::vector<float> want;
  for (std::size_t i = 0; i < count; ++i) {
    float sum = begin;
    for (std::size_t t = 0; t < taps; ++t) {
      const float product = weights[t] * x[i + static_cast<std::size_t>(offsets[t])];
      sum = sum + product;
    }
    want.push_back(sum);
  }
  Guarded<float> y(count);
  kernel.taps({x.data(), offsets.data(), weights.data(), taps, begin, y.data(), count});
  char what[64];
  std::snprintf(what, sizeof what, "%zu taps on %zu", taps, count);
  expect_result<float>(y, want, kernel.name, what);
}

void test_taps(void **) {
  each_kernel(kernels::real_kernels(), [](const RealKernel &kernel) {
    Random random(1);
    for (std::size_t count = 0; count <= 200; ++count)
      for (int i = 0; i < 3; ++i) check_taps(random, kernel, count);
    check_taps(random, kernel, 10007);
  });
}

void test_clamp(void **) {
  each_kernel(kernels::real_kernels(), [](const RealKernel &kernel) {
    Random random(2);
    for (std::size_t count = 0; count <= 200; ++count) {
      const float lo = random.one_in(3) ? -kInfinity : random.real(-5, 0);
      const float hi = random.one_in(3) ? kInfinity : random.real(0, 5);
      Guarded<float> y(count);
      std::vector<float> want;
      for (float &v : y.span()) {
        v = random.one_in(9) ? kNan : random.one_in(9) ? -kInfinity : random.one_in(9) ? -0.0f : random.real(-9, 9);
        want.push_back(std::isnan(v) ? v : v < lo ? lo : v > hi ? hi : v);
      }
      kernel.clamp(y.data(), count, lo, hi);
      expect_result<float>(y, want, kernel.name, "clamp");
    }
  });
}

void check_extent(const RealKernel &kernel, const Guarded<float> &x, Extent want) {
  const Extent got = kernel.extent(x.data(), x.size());
  if (got.finite != want.finite) fail_msg("%s: %zu values: finite is %d", kernel.name, x.size(), got.finite);
  if (!want.finite) return;
  expect_same<float>(std::span(&got.min, 1), std::span(&want.min, 1), kernel.name, "smallest");
  expect_same<float>(std::span(&got.max, 1), std::span(&want.max, 1), kernel.name, "largest");
}

void test_extent(void **) {
  each_kernel(kernels::real_kernels(), [](const RealKernel &kernel) {
    Random random(3);
    for (std::size_t count = 1; count <= 200; ++count) {
      Guarded<float> x(count);
      for (float &v : x.span()) v = random.real(-9, 9);
      const auto [min, max] = std::minmax_element(x.span().begin(), x.span().end());
      check_extent(kernel, x, {*min, *max, true});
      for (const float bad : {kNan, -kNan, kInfinity, -kInfinity}) {
        float &place = x[random.in<std::size_t>(0, static_cast<std::int64_t>(count) - 1)];
        const float before = place;
        place = bad;
        check_extent(kernel, x, {0, 0, false});
        place = before;
      }
      for (float &v : x.span()) v = random.one_in(2) ? -0.0f : 0.0f;
      check_extent(kernel, x, {0, 0, true});
      for (float &v : x.span()) v = random.one_in(2) ? -3e38f : 1e-45f;
      x[0] = -3e38f;
      x[count - 1] = 1e-45f;
      check_extent(kernel, x, {count == 1 ? 1e-45f : -3e38f, 1e-45f, true});
    }
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_taps), cmocka_unit_test(test_clamp), cmocka_unit_test(test_extent)};
  return run_at_both_edges("kernels.real", tests);
}
