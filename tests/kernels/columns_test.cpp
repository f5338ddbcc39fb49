// SPDX-License-Identifier: Apache-2.0
#include "kernels/columns/columns.hpp"

#include "support.hpp"

namespace qtn::test {
namespace {

using kernels::ColumnsKernel;

void expect_same(const char *kernel, const char *what, std::size_t column, double got, double want) {
  if (std::isnan(want) ? !std::isnan(got) : got != want)
    fail_msg("%s: %s of column %zu is %.17g, not %.17g", kernel, what, column, got, want);
}

/// Every number of columns up to 80, some of huge magnitude, in rows that are farther apart than they are long.
void test_sums(void **) {
  each_kernel(kernels::columns_kernels(), [](const ColumnsKernel &kernel) {
    Random random(1);
    for (std::size_t columns = 0; columns <= 80; ++columns) {
      const std::size_t rows = random.in<std::size_t>(0, 40), pitch = columns + random.in<std::size_t>(0, 3);
      Guarded<float> x(rows == 0 ? 0 : (rows - 1) * pitch + columns);
      Guarded<double> centres(columns), sums(columns), squares(columns);
      for (float &v : x.span()) v = random.real(-1, 1) * (random.one_in(20) ? 1e30f : 1.0f);
      for (double &v : centres.span()) v = static_cast<double>(random.real(-1, 1));
      const auto x_row = static_cast<std::ptrdiff_t>(pitch);
      for (const Guarded<double> *made : {&sums, &squares})
        for (double &sum : made->span()) sum = 0.5;
      kernel.sum({x.data(), rows, x_row, columns, sums.data(), nullptr});
      kernel.squares({x.data(), rows, x_row, columns, squares.data(), centres.data()});
      for (std::size_t c = 0; c < columns; ++c) {
        double sum = 0.5, square = 0.5;
        for (std::size_t r = 0; r < rows; ++r) {
          const auto v = static_cast<double>(x[r * pitch + c]);
          sum += v;
          square += (v - centres[c]) * (v - centres[c]);
        }
        expect_same(kernel.name, "the sum", c, sums[c], sum);
        expect_same(kernel.name, "the sum of squares", c, squares[c], square);
      }
      for (const Guarded<double> *made : {&sums, &squares})
        if (const std::ptrdiff_t at = made->written_outside(); at != 0) fail_msg("%s: wrote byte %td", kernel.name, at);
    }
  });
}

void test_standardize(void **) {
  each_kernel(kernels::columns_kernels(), [](const ColumnsKernel &kernel) {
    Random random(2);
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (std::size_t columns = 0; columns <= 80; ++columns) {
      const std::size_t rows = random.in<std::size_t>(1, 5), x_pitch = columns + random.in<std::size_t>(0, 3),
                        y_pitch = columns + random.in<std::size_t>(0, 3);
      Guarded<float> x((rows - 1) * x_pitch + columns), y((rows - 1) * y_pitch + columns);
      Guarded<double> centres(columns), gains(columns), shifts(columns);
      for (float &v : x.span()) v = random.one_in(15) ? std::numeric_limits<float>::quiet_NaN() : random.real(-9, 9);
      for (const Guarded<double> *g : {&centres, &gains, &shifts})
        for (double &v : g->span()) v = static_cast<double>(random.real(-2, 2));
      const std::vector<float> before(y.span().begin(), y.span().end());
      const bool bounded = random.one_in(2);
      const float lo = bounded ? 0 : -kInfinity, hi = bounded ? 6 : kInfinity;
      kernel.standardize({rows, columns, centres.data(), gains.data(), shifts.data(), lo, hi, x.data(),
                          static_cast<std::ptrdiff_t>(x_pitch), y.data(), static_cast<std::ptrdiff_t>(y_pitch)});
      for (std::size_t i = 0; i < before.size(); ++i) {
        const std::size_t c = i % y_pitch;
        float want = before[i];
        if (c < columns) {
          const auto from = static_cast<double>(x[i / y_pitch * x_pitch + c]);
          want = static_cast<float>((from - centres[c]) * gains[c] + shifts[c]);
          want = want <= lo ? lo : want > hi ? hi : want;
        }
        if (std::isnan(want) ? !std::isnan(y[i]) : std::memcmp(&y[i], &want, sizeof want) != 0)
          fail_msg("%s: element %zu of %zu columns is %g, not %g", kernel.name, i, columns, static_cast<double>(y[i]),
                   static_cast<double>(want));
      }
      if (const std::ptrdiff_t at = y.written_outside(); at != 0) fail_msg("%s: wrote byte %td", kernel.name, at);
    }
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_sums), cmocka_unit_test(test_standardize)};
  return run_at_both_edges("columns", tests);
}
