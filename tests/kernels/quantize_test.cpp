// SPDX-License-Identifier: Apache-2.0
#include "kernels/quantize/quantize.hpp"

#include "base/float_scope.hpp"
#include "support.hpp"

namespace qtn::test {
namespace {

using kernels::QuantizeKernel;

/// Element (i, j) at i*row + j*column.
struct Strides {
  std::ptrdiff_t row, column;
  std::size_t size(std::size_t rows, std::size_t columns) const {
    return (rows - 1) * static_cast<std::size_t>(row) + (columns - 1) * static_cast<std::size_t>(column) + 1;
  }
};

std::ptrdiff_t plus(std::size_t v, Random &random) {
  return static_cast<std::ptrdiff_t>(v + (random.one_in(2) ? 0 : random.in<std::size_t>(1, 3)));
}
Strides by_rows(std::size_t, std::size_t columns, Random &random) { return {plus(columns, random), 1}; }
Strides by_columns(std::size_t rows, std::size_t, Random &random) { return {1, plus(rows, random)}; }
Strides spread(std::size_t, std::size_t columns, Random &) { return {static_cast<std::ptrdiff_t>(2 * columns), 2}; }

using Layout = Strides (*)(std::size_t, std::size_t, Random &);

float any_float(Random &random) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  switch (random.in(0, 15)) {
    case 0:
      return std::numeric_limits<float>::quiet_NaN();
    case 1:
      return inf;
    case 2:
      return -inf;
    case 3:
      return 3e38f;
    case 4:
      return -3e38f;
    case 5:
      return -0.0f;
    case 6:
      return 1e-42f;
    case 7:
      return static_cast<float>(random.in(-300, 300)) * 0.5f;
    default:
      return random.real(-200, 200);
  }
}

void check(Random &random, const QuantizeKernel &kernel, std::size_t rows, std::size_t columns, Layout x_layout,
           Layout q_layout) {
  const Strides xs = x_layout(rows, columns, random), qs = q_layout(rows, columns, random);
  const QuantizedRange range = random.range();
  const float scale = random.one_in(4) ? 1.0f : random.one_in(6) ? 1e-38f : random.real(0.01f, 2.0f);
  char what[96];
  std::snprintf(what, sizeof what, "rows=%zu columns=%zu x(%td,%td) q(%td,%td)", rows, columns, xs.row, xs.column,
                qs.row, qs.column);
  const auto at = [](Strides s, std::size_t i, std::size_t j) {
    return i * static_cast<std::size_t>(s.row) + j * static_cast<std::size_t>(s.column);
  };

  Guarded<float> x(xs.size(rows, columns));
  const bool is_tame = random.one_in(2);
  for (float &v : x.span()) v = is_tame ? tame_float(random, scale) : any_float(random);
  Guarded<std::uint8_t> q(qs.size(rows, columns));
  std::vector<std::uint8_t> want(q.size(), 0xA5);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      want[at(qs, i, j)] = naive_quantize(static_cast<double>(x[at(xs, i, j)] / scale), range);
  kernel.quantize({rows, columns, x.data(), xs.row, xs.column, q.data(), qs.row, qs.column, scale, range});
  expect_result<std::uint8_t>(q, want, kernel.name, what);

  random.fill(q.span(), 0, 255);
  Guarded<float> back(xs.size(rows, columns));
  for (float &v : back.span()) v = -77.0f;
  std::vector<float> expected(back.size(), -77.0f);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      expected[at(xs, i, j)] =
          static_cast<float>(static_cast<double>(int{q[at(qs, i, j)]} - range.zero) * static_cast<double>(scale));
  kernel.dequantize({rows, columns, q.data(), qs.row, qs.column, back.data(), xs.row, xs.column, scale, range.zero});
  expect_result<float>(back, expected, kernel.name, what);
}

void test_all_layouts(void **) {
  each_kernel(kernels::quantize_kernels(), [](const QuantizeKernel &kernel) {
    Random random(1);
    for (Layout x : {by_rows, by_columns, spread})
      for (Layout q : {by_rows, by_columns, spread})
        for (int i = 0; i < 150; ++i)
          check(random, kernel, random.in<std::size_t>(1, 40), random.in<std::size_t>(1, 80), x, q);
  });
}

/// Planes of an image to 3 or 4 bytes for a pixel.
void test_images(void **) {
  each_kernel(kernels::quantize_kernels(), [](const QuantizeKernel &kernel) {
    Random random(2);
    for (std::size_t pixels = 1; pixels <= 70; ++pixels)
      for (std::size_t channels = 1; channels <= 5; ++channels) {
        check(random, kernel, pixels, channels, by_columns, by_rows);
        const Layout four = [](std::size_t, std::size_t, Random &) { return Strides{4, 1}; };
        if (channels <= 4) check(random, kernel, pixels, channels, by_columns, four);
      }
  });
}

void test_long_rows(void **) {
  each_kernel(kernels::quantize_kernels(), [](const QuantizeKernel &kernel) {
    Random random(3);
    for (std::size_t n = 1; n <= 200; ++n) check(random, kernel, 1, n, by_rows, by_rows);
    check(random, kernel, 7, 10007, by_rows, by_rows);
  });
}

/// Where denormal floats count as 0, as in steps of floats, the inverse of a large scale is one.
void test_large_scale_without_denormals(void **) {
  each_kernel(kernels::quantize_kernels(), [](const QuantizeKernel &kernel) {
    const std::vector<float> x(64, 3.4e38f);
    std::vector<std::uint8_t> q(x.size());
    const FloatScope scope(FloatMode::without_denormals);
    kernel.quantize({1, x.size(), x.data(), 64, 1, q.data(), 64, 1, 3e38f, {}});
    for (const std::uint8_t v : q) assert_int_equal(v, 1);
  });
}

void test_nothing(void **) {
  each_kernel(kernels::quantize_kernels(), [](const QuantizeKernel &kernel) {
    kernel.quantize({0, 5, nullptr, 5, 1, nullptr, 5, 1, 1.0f, {}});
    kernel.dequantize({5, 0, nullptr, 0, 1, nullptr, 0, 1, 1.0f, 0});
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_all_layouts), cmocka_unit_test(test_images),
      cmocka_unit_test(test_long_rows),   cmocka_unit_test(test_large_scale_without_denormals),
      cmocka_unit_test(test_nothing),
  };
  return run_at_both_edges("kernels.quantize", tests);
}
