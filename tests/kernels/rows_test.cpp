// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/rows.hpp"

#include "support.hpp"

namespace qtn::test {
namespace {

using kernels::RowsKernel;

constexpr double kEpsilon = 1e-5;

struct Answers {
  std::vector<float> y, dx;
  std::vector<double> d_scale, d_shift;
};

/// By the definitions, in long double.
Answers definition(std::size_t rows, std::size_t columns, const float *x, const float *dy, const float *scale,
                   const float *shift) {
  Answers a;
  a.d_scale.resize(columns);
  a.d_shift.resize(columns);
  const auto count = static_cast<long double>(columns);
  for (std::size_t row = 0; row < rows; ++row, x += columns, dy += columns) {
    long double mean = 0, squares = 0, slopes = 0, products = 0;
    for (std::size_t i = 0; i < columns; ++i) mean += static_cast<long double>(x[i]) / count;
    for (std::size_t i = 0; i < columns; ++i)
      squares += (static_cast<long double>(x[i]) - mean) * (static_cast<long double>(x[i]) - mean);
    const long double rstd = 1 / std::sqrt(squares / count + static_cast<long double>(kEpsilon));
    const auto v = [&](std::size_t i) { return (static_cast<long double>(x[i]) - mean) * rstd; };
    const auto g = [&](std::size_t i) { return static_cast<long double>(dy[i]) * static_cast<long double>(scale[i]); };
    for (std::size_t i = 0; i < columns; ++i) {
      slopes += g(i);
      products += g(i) * v(i);
      a.d_scale[i] += static_cast<double>(static_cast<long double>(dy[i]) * v(i));
      a.d_shift[i] += static_cast<double>(dy[i]);
      a.y.push_back(static_cast<float>(v(i) * static_cast<long double>(scale[i]) +
                                       (shift ? static_cast<long double>(shift[i]) : 0)));
    }
    for (std::size_t i = 0; i < columns; ++i)
      a.dx.push_back(static_cast<float>(rstd * (g(i) - slopes / count - v(i) * products / count)));
  }
  return a;
}

template <class T>
void expect_close(std::span<const T> got, const std::vector<T> &want, const char *kernel, const char *what) {
  double largest = 1;
  for (const T v : want) largest = std::fmax(largest, std::fabs(static_cast<double>(v)));
  for (std::size_t i = 0; i < want.size(); ++i)
    if (!(std::fabs(static_cast<double>(got[i]) - static_cast<double>(want[i])) <= 1e-6 * largest))
      fail_msg("%s: %s: element %zu of %zu is %g, not %g", kernel, what, i, want.size(), static_cast<double>(got[i]),
               static_cast<double>(want[i]));
}

void check(Random &random, const RowsKernel &kernel, std::size_t rows, std::size_t columns) {
  const RowsKernel &ref = kernels::rows_kernels().back();
  Guarded<float> x(rows * columns), dy(rows * columns), scale(columns), shift(columns), y(rows * columns),
      dx(rows * columns);
  Guarded<double> sums(2 * columns);
  const float middle = random.real(-3, 3);
  for (float &v : x.span()) v = middle + random.real(-1, 1);
  for (const Guarded<float> *g : {&dy, &scale, &shift})
    for (float &v : g->span()) v = random.real(-2, 2);
  char what[64];
  std::snprintf(what, sizeof what, "%zu rows of %zu", rows, columns);
  const float *of_shift = random.one_in(2) ? shift.data() : nullptr;
  const Answers want = definition(rows, columns, x.data(), dy.data(), scale.data(), of_shift);
  std::vector<float> y_ref(rows * columns), dx_ref(rows * columns);
  std::vector<double> sums_ref(2 * columns);
  const kernels::RowsArgs args{x.data(), rows, columns, kEpsilon, scale.data()};
  for (double &sum : sums.span()) sum = 0;
  kernel.normalize({args, of_shift, y.data()});
  kernel.backward({args, dy.data(), dx.data(), sums.data(), sums.data() + columns});
  ref.normalize({args, of_shift, y_ref.data()});
  ref.backward({args, dy.data(), dx_ref.data(), sums_ref.data(), sums_ref.data() + columns});
  expect_close<float>(y.span(), want.y, kernel.name, what);
  expect_close<float>(dx.span(), want.dx, kernel.name, what);
  expect_close<double>(sums.span().first(columns), want.d_scale, kernel.name, what);
  expect_close<double>(sums.span().last(columns), want.d_shift, kernel.name, what);
  expect_result<float>(y, y_ref, kernel.name, what);
  expect_result<float>(dx, dx_ref, kernel.name, what);
  expect_result<double>(sums, sums_ref, kernel.name, what);
}

void test_rows(void **) {
  each_kernel(kernels::rows_kernels(), [](const RowsKernel &kernel) {
    Random random(1);
    for (std::size_t columns = 2; columns <= 80; ++columns)
      check(random, kernel, random.in<std::size_t>(1, 5), columns);
    check(random, kernel, 3, 768);
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
  return run_at_both_edges("rows", tests);
}
