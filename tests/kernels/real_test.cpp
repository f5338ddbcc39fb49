// SPDX-License-Identifier: Apache-2.0
#include "kernels/real/real.hpp"

#include <algorithm>
#include <cmath>

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
      const float lo = random.one_in(3) ? -kInfinity : random.one_in(2) ? 0.0f : random.real(-5, 0);
      const float hi = random.one_in(3) ? kInfinity : random.real(0, 5);
      Guarded<float> y(count);
      std::vector<float> want;
      for (float &v : y.span()) {
        v = random.one_in(9) ? kNan : random.one_in(9) ? -kInfinity : random.one_in(9) ? -0.0f : random.real(-9, 9);
        want.push_back(std::isnan(v) ? v : v <= lo ? lo : v > hi ? hi : v);
      }
      kernel.clamp(y.data(), count, lo, hi);
      expect_result<float>(y, want, kernel.name, "clamp");
    }
  });
}

void test_add(void **) {
  each_kernel(kernels::real_kernels(), [](const RealKernel &kernel) {
    Random random(9);
    for (std::size_t count = 0; count <= 200; ++count) {
      const float lo = random.one_in(2) ? -kInfinity : 0.0f, hi = random.one_in(2) ? kInfinity : random.real(0, 5);
      Guarded<float> x(count), y(count);
      std::vector<float> want;
      for (std::size_t i = 0; i < count; ++i) {
        x[i] = random.one_in(9) ? kInfinity : random.real(-9, 9);
        y[i] = random.one_in(9) ? -x[i] : random.real(-9, 9);
        const float sum = x[i] + y[i];
        want.push_back(std::isnan(sum) ? sum : sum <= lo ? lo : sum > hi ? hi : sum);
      }
      kernel.add(y.data(), x.data(), count, lo, hi);
      expect_result<float>(y, want, kernel.name, "add");
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

void test_gate(void **) {
  each_kernel(kernels::real_kernels(), [](const RealKernel &kernel) {
    Random random(7);
    for (std::size_t count = 0; count <= 200; ++count) {
      const float lo = random.one_in(3) ? -kInfinity : random.one_in(2) ? 0.0f : random.real(-5, 0);
      const float hi = random.one_in(3) ? kInfinity : random.real(0, 5);
      Guarded<float> dy(count), y(count), dx(count);
      std::vector<float> want;
      for (std::size_t i = 0; i < count; ++i) {
        dy[i] = random.one_in(9) ? kNan : random.real(-9, 9);
        y[i] = random.one_in(9) ? kNan : random.one_in(5) ? lo : random.one_in(5) ? hi : random.real(-9, 9);
        want.push_back(y[i] <= lo || y[i] >= hi ? 0.0f : dy[i]);
      }
      kernel.gate({dy.data(), y.data(), lo, hi, dx.data(), count});
      expect_result<float>(dx, want, kernel.name, "gate");
    }
  });
}

void check_copy(Random &random, const RealKernel &kernel, std::size_t columns) {
  const std::size_t rows = random.in<std::size_t>(1, 4);
  const std::size_t x_step = random.in<std::size_t>(1, 3), y_step = random.in<std::size_t>(1, 3);
  const bool adds = random.one_in(2);
  const auto width = [&](std::size_t step) { return columns == 0 ? 0 : (columns - 1) * step + 1; };
  const std::size_t x_pitch = width(x_step) + random.in<std::size_t>(0, 3),
                    y_pitch = width(y_step) + random.in<std::size_t>(0, 3);
  Guarded<float> x((rows - 1) * x_pitch + width(x_step)), y((rows - 1) * y_pitch + width(y_step));
  for (float &v : x.span()) v = random.one_in(9) ? kNan : random.real(-10, 10);
  for (float &v : y.span()) v = random.real(-10, 10);
  std::vector<float> want(y.span().begin(), y.span().end());
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < columns; ++i) {
      const float v = x[row * x_pitch + i * x_step];
      float &to = want[row * y_pitch + i * y_step];
      to = adds ? to + v : v;
    }
  kernel.copy({x.data(), x_pitch, x_step, y.data(), y_pitch, y_step, rows, columns, adds});
  char what[80];
  std::snprintf(what, sizeof what, "copy of %zu rows of %zu, steps %zu and %zu%s", rows, columns, x_step, y_step,
                adds ? ", added" : "");
  expect_result<float>(y, want, kernel.name, what);
}

void test_copy(void **) {
  each_kernel(kernels::real_kernels(), [](const RealKernel &kernel) {
    Random random(4);
    for (std::size_t columns = 0; columns <= 100; ++columns)
      for (int i = 0; i < 18; ++i) check_copy(random, kernel, columns);
  });
}

/// Offsets of taps, and how many elements lie behind the first of each.
struct Taps {
  Taps(Random &random, std::size_t count) {
    for (std::size_t t = 0; t < count; ++t) {
      offsets.push_back(random.in<std::ptrdiff_t>(0, 40));
      reach = std::max(reach, static_cast<std::size_t>(offsets.back()));
    }
  }
  std::vector<std::ptrdiff_t> offsets;
  std::size_t reach = 0;
};

/// One row of outputs; or, of whole vectors, rows of them that begin in the middle.
kernels::Rows any_rows(Random &random, std::size_t count) {
  if (count % kernels::kSumLanes != 0 || random.one_in(2)) return {count + random.in<std::size_t>(0, 3), 0};
  const std::size_t vectors = random.in<std::size_t>(1, 4), length = vectors * kernels::kSumLanes;
  return {length, length + random.in<std::size_t>(0, 5), random.in<std::size_t>(0, vectors - 1) * kernels::kSumLanes};
}

std::size_t first_tap(const kernels::Rows &rows, std::size_t i) {
  return (rows.column + i) / rows.length * rows.pitch + (rows.column + i) % rows.length;
}

void check_convolve(Random &random, const RealKernel &kernel, std::size_t count) {
  const std::size_t filters = random.in<std::size_t>(1, 9), y_step = count + random.in<std::size_t>(0, 5);
  const Taps taps(random, random.in<std::size_t>(0, 12));
  std::vector<float> weights;
  for (std::size_t i = 0; i < taps.offsets.size() * filters; ++i) weights.push_back(random.real(-2, 2));
  const kernels::Rows rows = any_rows(random, count);
  Guarded<float> x(taps.offsets.empty() ? 0 : first_tap(rows, count - 1) + 1 + taps.reach);
  Guarded<float> y((filters - 1) * y_step + count);
  for (float &v : x.span()) v = random.real(-10, 10);
  std::fill(y.span().begin(), y.span().end(), 7.0f);
  std::vector<float> want(y.size(), 7.0f);
  for (std::size_t f = 0; f < filters; ++f)
    for (std::size_t i = 0; i < count; ++i) {
      float sum = 0;
      for (std::size_t t = 0; t < taps.offsets.size(); ++t)
        sum =
            std::fma(weights[t * filters + f], x[first_tap(rows, i) + static_cast<std::size_t>(taps.offsets[t])], sum);
      want[f * y_step + i] = sum;
    }
  kernel.convolve(
      {x.data(), rows, taps.offsets.data(), weights.data(), taps.offsets.size(), filters, y.data(), y_step, count});
  char what[64];
  std::snprintf(what, sizeof what, "%zu filters of %zu taps on %zu", filters, taps.offsets.size(), count);
  expect_result<float>(y, want, kernel.name, what);
}

void test_convolve(void **) {
  each_kernel(kernels::real_kernels(), [](const RealKernel &kernel) {
    Random random(5);
    for (std::size_t count = 1; count <= 150; ++count)
      for (int i = 0; i < 12; ++i) check_convolve(random, kernel, count);
  });
}

void check_correlate(Random &random, const RealKernel &kernel, std::size_t filters, std::size_t tap_count) {
  constexpr std::size_t kLanes = kernels::kSumLanes;
  const std::size_t count = kLanes * random.in<std::size_t>(0, 5), images = random.in<std::size_t>(1, 3);
  const Taps taps(random, tap_count);
  const std::size_t x_image = random.in<std::size_t>(0, 9), sums_step = tap_count + random.in<std::size_t>(0, 3);
  const std::size_t dy_step = count + random.in<std::size_t>(0, 3), dy_image = filters * dy_step;
  const kernels::Rows rows = any_rows(random, count);
  Guarded<float> x((count == 0 ? 0 : first_tap(rows, count - 1) + 1 + taps.reach) + (images - 1) * x_image),
      dy((images - 1) * dy_image + (filters - 1) * dy_step + count);
  Guarded<float> sums((filters - 1) * sums_step + tap_count);
  for (float &v : x.span()) v = random.real(-10, 10);
  for (float &v : dy.span()) v = random.real(-2, 2);
  for (float &v : sums.span()) v = random.real(-5, 5);
  std::vector<float> want(sums.span().begin(), sums.span().end());
  for (std::size_t f = 0; f < filters; ++f)
    for (std::size_t t = 0; t < tap_count; ++t) {
      float lanes[kLanes] = {};
      for (std::size_t image = 0; image < images; ++image)
        for (std::size_t i = 0; i < count; ++i)
          lanes[i % kLanes] = std::fma(
              dy[image * dy_image + f * dy_step + i],
              x[image * x_image + static_cast<std::size_t>(taps.offsets[t]) + first_tap(rows, i)], lanes[i % kLanes]);
      for (const std::size_t half : {8, 4, 2, 1})
        for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
      want[f * sums_step + t] += lanes[0];
    }
  kernel.correlate({x.data(), rows, taps.offsets.data(), tap_count, x_image, dy.data(), dy_step, dy_image, filters,
                    images, count, sums.data(), sums_step});
  char what[64];
  std::snprintf(what, sizeof what, "sums of %zu filters by %zu taps", filters, tap_count);
  expect_result<float>(sums, want, kernel.name, what);
}

void test_correlate(void **) {
  each_kernel(kernels::real_kernels(), [](const RealKernel &kernel) {
    Random random(6);
    for (std::size_t filters = 1; filters <= 9; ++filters)
      for (std::size_t taps = 1; taps <= 26; ++taps)
        for (int i = 0; i < 4; ++i) check_correlate(random, kernel, filters, taps);
  });
}

void check_take(Random &random, const RealKernel &kernel, std::size_t step, std::size_t count) {
  constexpr std::int32_t kTap = 7;
  Guarded<float> x(count == 0 ? 0 : (count - 1) * step + 1), top(count);
  Guarded<std::int32_t> at(count);
  // Few different numbers, so that many are equal.
  const auto any = [&] { return random.one_in(10) ? kNan : random.one_in(10) ? -kInfinity : random.in<float>(-2, 2); };
  for (float &v : x.span()) v = any();
  std::vector<float> want;
  std::vector<std::int32_t> want_at;
  for (std::size_t i = 0; i < count; ++i) {
    top[i] = any();
    at[i] = random.in(-1, 5);
    const float v = x[i * step];
    const bool takes = std::isnan(v) || at[i] < 0 || v > top[i];
    want.push_back(takes ? v : top[i]);
    want_at.push_back(takes ? kTap : at[i]);
  }
  kernel.take({x.data(), step, count, kTap, top.data(), at.data()});
  char what[64];
  std::snprintf(what, sizeof what, "%zu of every %zu", count, step);
  expect_result<float>(top, want, kernel.name, what);
  expect_result<std::int32_t>(at, want_at, kernel.name, what);
}

void test_take(void **) {
  each_kernel(kernels::real_kernels(), [](const RealKernel &kernel) {
    Random random(9);
    for (std::size_t count = 0; count <= 100; ++count)
      for (const std::size_t step : {1, 2, 3}) check_take(random, kernel, step, count);
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_taps),     cmocka_unit_test(test_clamp),     cmocka_unit_test(test_add),
      cmocka_unit_test(test_extent),   cmocka_unit_test(test_gate),      cmocka_unit_test(test_copy),
      cmocka_unit_test(test_convolve), cmocka_unit_test(test_correlate), cmocka_unit_test(test_take)};
  return run_at_both_edges("kernels.real", tests);
}
