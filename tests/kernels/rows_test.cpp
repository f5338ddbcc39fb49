// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/rows.hpp"

#include <algorithm>

#include "support.hpp"

namespace qtn::test {
namespace {

using kernels::Addends;
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
      check(random, kernel, random.in<std::size_t>(1, 11), columns);
    check(random, kernel, 3, 768);
  });
}

/// Along an axis with `inner` elements to each of its places.
std::vector<float> softmax(const float *x, std::size_t outer, std::size_t columns, std::size_t inner) {
  std::vector<float> y(outer * columns * inner);
  for (std::size_t o = 0; o < outer; ++o)
    for (std::size_t i = 0; i < inner; ++i) {
      const std::size_t at = o * columns * inner + i;
      float top = x[at];
      for (std::size_t k = 1; k < columns; ++k) top = std::fmax(top, x[at + k * inner]);
      long double sum = 0;
      const auto e = [&](std::size_t k) { return std::exp(static_cast<long double>(x[at + k * inner] - top)); };
      for (std::size_t k = 0; k < columns; ++k) sum += e(k);
      for (std::size_t k = 0; k < columns; ++k) y[at + k * inner] = static_cast<float>(e(k) / sum);
    }
  return y;
}

void check_softmax(Random &random, const RowsKernel &kernel, std::size_t outer, std::size_t columns,
                   std::size_t inner) {
  const RowsKernel &ref = kernels::rows_kernels().back();
  const std::size_t count = outer * columns * inner;
  Guarded<float> x(count), y(count);
  for (float &v : x.span()) v = random.one_in(9) ? random.real(-400, 0) : random.real(-9, 9);
  if (random.one_in(2)) x[random.in<std::size_t>(0, static_cast<std::int64_t>(count) - 1)] = -1e38f;
  std::vector<float> y_ref(count);
  kernel.softmax({x.data(), outer, columns, inner, y.data()});
  ref.softmax({x.data(), outer, columns, inner, y_ref.data()});
  expect_result<float>(y, y_ref, kernel.name, "softmax");
  const std::vector<float> want = softmax(x.data(), outer, columns, inner);
  for (std::size_t i = 0; i < count; ++i)
    if (!(std::fabs(y[i] - want[i]) <= 0x1p-22f * want[i] + 0x1p-125f))
      fail_msg("%s: softmax of %zu beside %zu: %a is not %a", kernel.name, columns, inner, static_cast<double>(y[i]),
               static_cast<double>(want[i]));
}

/// Its logarithms, of rows, which differ by what the largest of them and their differences are rounded.
void check_log_softmax(Random &random, const RowsKernel &kernel, std::size_t rows, std::size_t columns) {
  Guarded<float> x(rows * columns), y(rows * columns);
  for (float &v : x.span()) v = random.one_in(9) ? random.real(-400, 0) : random.real(-9, 9);
  std::vector<float> y_ref(rows * columns);
  kernel.log_softmax({x.data(), rows, columns, 1, y.data()});
  kernels::rows_kernels().back().log_softmax({x.data(), rows, columns, 1, y_ref.data()});
  expect_result<float>(y, y_ref, kernel.name, "log_softmax");
  for (std::size_t r = 0; r < rows; ++r) {
    const std::span<const float> row = x.span().subspan(r * columns, columns);
    const long double top = *std::max_element(row.begin(), row.end());
    long double sum = 0;
    for (const float v : row) sum += std::exp(v - top);
    for (std::size_t k = 0; k < columns; ++k) {
      const auto want = static_cast<double>(row[k] - top - std::log(sum));
      if (!(std::fabs(y[r * columns + k] - want) <= 0x1p-22 * (1 + std::fabs(want))))
        fail_msg("%s: log_softmax of %zu: %a is not %a", kernel.name, columns, static_cast<double>(y[r * columns + k]),
                 want);
    }
  }
}

void test_log_softmax(void **) {
  each_kernel(kernels::rows_kernels(), [](const RowsKernel &kernel) {
    Random random(6);
    for (std::size_t columns = 1; columns <= 200; ++columns)
      check_log_softmax(random, kernel, random.in<std::size_t>(1, 20), columns);
    check_log_softmax(random, kernel, 2, 5000);
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    std::vector<float> x(37, 1), y(37);
    x[5] = -kInfinity;
    kernel.log_softmax({x.data(), 1, 37, 1, y.data()});
    assert_true(y[5] == -kInfinity && std::isfinite(y[4]));
    for (const float v : {kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
      x[5] = v;
      kernel.log_softmax({x.data(), 1, 37, 1, y.data()});
      assert_true(std::isnan(y[5]));
    }
  });
}

void test_softmax(void **) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  each_kernel(kernels::rows_kernels(), [](const RowsKernel &kernel) {
    Random random(2);
    for (std::size_t columns = 1; columns <= 200; ++columns)
      check_softmax(random, kernel, random.in<std::size_t>(1, 4), columns, 1);
    for (std::size_t inner = 8; inner <= 40; ++inner)
      check_softmax(random, kernel, random.in<std::size_t>(1, 3), random.in<std::size_t>(1, 20), inner);
    for (const std::size_t count : {std::size_t{3}, std::size_t{16}, std::size_t{37}})
      for (std::size_t at = 0; at < count; ++at) {
        std::vector<float> x(count, 1), y(count);
        x[at] = -kInfinity;
        kernel.softmax({x.data(), 1, count, 1, y.data()});
        assert_true(y[at] == 0 && y[at == 0 ? 1 : 0] > 0);
        for (const float v : {kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
          x[at] = v;
          kernel.softmax({x.data(), 1, count, 1, y.data()});
          for (const float got : y) assert_true(std::isnan(got) || (v == kInfinity && got == 0));
          if (count < 8) continue;
          kernel.softmax({x.data(), 1, 1, count, y.data()});
          assert_true(std::isnan(y[at]) && y[at == 0 ? 1 : 0] == 1);
        }
      }
  });
}

/// Scores whose rows lie apart: the bits of a product, a sum and Softmax one after the other.
void check_score(Random &random, const RowsKernel &kernel, std::size_t rows, std::size_t columns) {
  const std::size_t row = columns + random.in<std::size_t>(0, 20), mask_row = random.one_in(2) ? 0 : columns + 3;
  const std::size_t last = rows * row - (row - columns);
  Guarded<float> x(last), mask((rows - 1) * mask_row + columns);
  for (float &v : x.span()) v = random.real(-9, 9);
  for (float &v : mask.span()) v = random.one_in(9) ? -3e38f : random.real(-1, 1);
  const float factor = random.one_in(3) ? 1 : random.real(0.1f, 2);
  const bool masked = random.one_in(2);
  const std::vector<float> before(x.data(), x.data() + last);
  std::vector<float> want(before);
  for (std::size_t r = 0; r < rows; ++r) {
    std::vector<float> scores(before.data() + r * row, before.data() + r * row + columns);
    for (std::size_t c = 0; c < columns; ++c) {
      scores[c] *= factor;
      if (masked) scores[c] += mask[r * mask_row + c];
    }
    kernels::rows_kernels().back().softmax({scores.data(), 1, columns, 1, want.data() + r * row});
  }
  kernel.score({x.data(), rows, columns, static_cast<std::ptrdiff_t>(row), factor, masked ? mask.data() : nullptr,
                static_cast<std::ptrdiff_t>(mask_row)});
  expect_result<float>(x, want, kernel.name, "scores");
}

void test_choices(void **) {
  each_kernel(kernels::rows_kernels(), [](const RowsKernel &kernel) {
    Random random(11);
    for (std::size_t columns = 1; columns <= 70; ++columns) {
      const std::size_t rows = random.in<std::size_t>(1, 4), step = columns + random.in<std::size_t>(0, 5);
      Guarded<float> x((rows - 1) * step + columns);
      Guarded<std::uint8_t> chosen((rows - 1) * step + columns);
      for (float &v : x.span()) v = random.real(-2, 2);
      for (std::uint8_t &v : chosen.span()) v = random.one_in(2) ? (random.one_in(4) ? 200 : 1) : 0;
      std::vector<float> want(x.span().begin(), x.span().end());
      const bool keeps = random.one_in(2);
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < columns; ++c) {
          float &v = want[r * step + c];
          v = (chosen[r * step + c] != 0) == keeps ? v * 0.3f : -INFINITY;
        }
      const auto row = static_cast<std::ptrdiff_t>(step);
      kernel.choose_scores({x.data(), rows, columns, row, 0.3f, chosen.data(), row, keeps, -INFINITY});
      for (std::size_t i = 0; i < want.size(); ++i) assert_true(x[i] == want[i]);
      assert_int_equal(x.written_outside(), 0);
    }
  });
}

void test_score(void **) {
  each_kernel(kernels::rows_kernels(), [](const RowsKernel &kernel) {
    Random random(5);
    for (std::size_t columns = 1; columns <= 200; ++columns)
      for (int draw = 0; draw < 4; ++draw) check_score(random, kernel, random.in<std::size_t>(1, 40), columns);
    for (const std::size_t columns : {std::size_t{1500}, std::size_t{5000}}) check_score(random, kernel, 3, columns);
  });
}

void test_root_mean_square(void **) {
  const RowsKernel &ref = kernels::rows_kernels().back();
  each_kernel(kernels::rows_kernels(), [&](const RowsKernel &kernel) {
    Random random(3);
    for (std::size_t columns = 1; columns <= 200; ++columns) {
      const std::size_t rows = random.in<std::size_t>(0, 4), count = rows * columns;
      Guarded<float> x(count), scale(columns), y(count), rstd(rows);
      for (float &v : x.span()) v = random.real(-3, 3);
      for (float &v : scale.span()) v = random.real(-2, 2);
      std::vector<float> y_ref(count), rstd_ref(rows), want;
      const kernels::RowsArgs args{x.data(), rows, columns, kEpsilon, scale.data()};
      kernel.root_mean_square({args, y.data(), rstd.data()});
      ref.root_mean_square({args, y_ref.data(), rstd_ref.data()});
      expect_result<float>(y, y_ref, kernel.name, "root mean square");
      expect_result<float>(rstd, rstd_ref, kernel.name, "inverse of the root mean square");
      for (std::size_t r = 0; r < rows; ++r) {
        long double squares = 0;
        for (std::size_t i = 0; i < columns; ++i)
          squares += static_cast<long double>(x[r * columns + i]) * static_cast<long double>(x[r * columns + i]);
        const long double inverse =
            1 / std::sqrt(squares / static_cast<long double>(columns) + static_cast<long double>(kEpsilon));
        for (std::size_t i = 0; i < columns; ++i)
          want.push_back(static_cast<float>(static_cast<long double>(x[r * columns + i]) * inverse *
                                            static_cast<long double>(scale[i])));
      }
      expect_close<float>(y.span(), want, kernel.name, "root mean square");
    }
  });
}

void test_sums(void **) {
  const RowsKernel &ref = kernels::rows_kernels().back();
  each_kernel(kernels::rows_kernels(), [&](const RowsKernel &kernel) {
    Random random(4);
    for (std::size_t columns = 0; columns <= 200; ++columns)
      for (const Addends of : {Addends::numbers, Addends::magnitudes, Addends::squares}) {
        const auto rows = random.in<std::size_t>(1, 9), row = columns + random.in<std::size_t>(0, 3);
        Guarded<float> x((rows - 1) * row + columns);
        for (float &v : x.span())
          v = std::exp2(random.real(-20, 20)) * (of != Addends::numbers && random.one_in(2) ? -1.0f : 1.0f);
        Guarded<double> sums(rows);
        for (double &sum : sums.span()) sum = 1;
        std::vector<double> sums_ref(rows, 1);
        kernel.sums({of, x.data(), rows, static_cast<std::ptrdiff_t>(row), columns, sums.data()});
        ref.sums({of, x.data(), rows, static_cast<std::ptrdiff_t>(row), columns, sums_ref.data()});
        expect_result<double>(sums, sums_ref, kernel.name, "sums");
        for (std::size_t r = 0; r < rows; ++r) {
          long double total = 1;
          for (std::size_t c = 0; c < columns; ++c) {
            const auto v = static_cast<long double>(x[r * row + c]);
            total += of == Addends::squares ? v * v : std::fabs(v);
          }
          assert_true(std::fabs(sums[r] - static_cast<double>(total)) <= 1e-13 * static_cast<double>(total));
        }
      }
  });
}

void test_extremes(void **) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  each_kernel(kernels::rows_kernels(), [&](const RowsKernel &kernel) {
    Random random(6);
    for (std::size_t columns = 1; columns <= 200; ++columns)
      for (const bool largest : {false, true}) {
        const auto rows = random.in<std::size_t>(1, 5), row = columns + random.in<std::size_t>(0, 3);
        Guarded<float> x((rows - 1) * row + columns), y(rows);
        for (float &v : x.span()) v = random.real(-9, 9);
        if (random.one_in(2)) x[random.in<std::size_t>(0, columns - 1)] = kNaN;
        for (float &v : y.span()) v = random.one_in(9) ? kNaN : random.one_in(2) ? 0 : largest ? 8.9f : -8.9f;
        std::vector<float> want;
        for (std::size_t r = 0; r < rows; ++r) {
          float found = y[r];
          for (std::size_t c = 0; c < columns; ++c) {
            const float v = x[r * row + c];
            if (std::isnan(v) || (largest ? v > found : v < found)) found = v;
          }
          want.push_back(found);
        }
        kernel.extremes({largest, x.data(), rows, static_cast<std::ptrdiff_t>(row), columns, y.data()});
        for (std::size_t r = 0; r < rows; ++r) assert_true(std::isnan(want[r]) ? std::isnan(y[r]) : y[r] == want[r]);
      }
  });
}

void test_moments(void **) {
  const RowsKernel &ref = kernels::rows_kernels().back();
  each_kernel(kernels::rows_kernels(), [&](const RowsKernel &kernel) {
    Random random(5);
    for (std::size_t count = 1; count <= 200; ++count) {
      Guarded<float> x(count), y(count);
      for (float &v : x.span()) v = random.real(90, 110);
      const kernels::RowMoments got = kernel.moments(x.data(), count), same = ref.moments(x.data(), count);
      assert_true(got.mean == same.mean && got.variance == same.variance);
      long double mean = 0, variance = 0;
      const auto wide = static_cast<long double>(count);
      for (const float v : x.span()) mean += static_cast<long double>(v) / wide;
      for (const float v : x.span())
        variance += (static_cast<long double>(v) - mean) * (static_cast<long double>(v) - mean) / wide;
      assert_true(std::fabs(got.mean - static_cast<double>(mean)) <= 1e-11);
      assert_true(std::fabs(got.variance - static_cast<double>(variance)) <= 1e-11);
      std::vector<float> want;
      for (const float v : x.span()) want.push_back(static_cast<float>((static_cast<double>(v) - 100.5) * 0.3 + 0.1));
      kernel.shift({x.data(), count, 100.5, 0.3, 0.1, y.data()});
      expect_result<float>(y, want, kernel.name, "shift");
    }
  });
}

void test_products(void **) {
  const RowsKernel &ref = kernels::rows_kernels().back();
  each_kernel(kernels::rows_kernels(), [&](const RowsKernel &kernel) {
    Random random(6);
    for (std::size_t k = 0; k <= 100; ++k) {
      const std::size_t m = random.in<std::size_t>(0, 9), n = random.in<std::size_t>(1, 9), pitch = n + k % 3;
      const bool adds = random.one_in(2);
      Guarded<float> x(m * k), w(n * k), y(m == 0 ? 0 : (m - 1) * pitch + n);
      for (const Guarded<float> *g : {&x, &w, &y})
        for (float &v : g->span()) v = random.real(-2, 2);
      const std::vector<float> before(y.span().begin(), y.span().end());
      std::vector<float> of_ref = before;
      kernel.products({x.data(), m, w.data(), n, k, y.data(), pitch, adds});
      ref.products({x.data(), m, w.data(), n, k, of_ref.data(), pitch, adds});
      expect_result<float>(y, of_ref, kernel.name, "products");
      for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < n; ++j) {
          double want = adds ? static_cast<double>(before[i * pitch + j]) : 0;
          for (std::size_t t = 0; t < k; ++t)
            want += static_cast<double>(x[i * k + t]) * static_cast<double>(w[j * k + t]);
          assert_true(std::fabs(static_cast<double>(y[i * pitch + j]) - want) <= 1e-4);
        }
    }
  });
}

void test_key_products(void **) {
  const RowsKernel &ref = kernels::rows_kernels().back();
  each_kernel(kernels::rows_kernels(), [&](const RowsKernel &kernel) {
    Random random(6);
    for (std::size_t k = 0; k <= 300; ++k) {
      const std::size_t m = random.in<std::size_t>(0, 9), n = random.in<std::size_t>(1, 70);
      const auto pitch = [&](std::size_t columns) { return columns + random.in<std::size_t>(0, 2); };
      const auto size = [](std::size_t rows, std::size_t row, std::size_t columns) {
        return rows == 0 ? 0 : (rows - 1) * row + columns;
      };
      const std::size_t x_row = pitch(k), w_row = pitch(k), y_row = pitch(n);
      Guarded<float> x(size(m, x_row, k)), w(size(n, w_row, k)), y(size(m, y_row, n));
      for (const Guarded<float> *g : {&x, &w, &y})
        for (float &v : g->span()) v = random.real(-2, 2);
      std::vector<float> of_ref(y.span().begin(), y.span().end());
      for (const auto &[by, to] : {std::pair{&kernel, y.data()}, std::pair{&ref, of_ref.data()}})
        by->key_products({x.data(), static_cast<std::ptrdiff_t>(x_row), m, w.data(),
                          static_cast<std::ptrdiff_t>(w_row), n, k, to, static_cast<std::ptrdiff_t>(y_row)});
      expect_result<float>(y, of_ref, kernel.name, "key products");
      for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < n; ++j) {
          double want = 0;
          for (std::size_t t = 0; t < k; ++t)
            want += static_cast<double>(x[i * x_row + t]) * static_cast<double>(w[j * w_row + t]);
          assert_true(std::fabs(static_cast<double>(y[i * y_row + j]) - want) <= 1e-4);
        }
    }
  });
}

void test_mixtures(void **) {
  const RowsKernel &ref = kernels::rows_kernels().back();
  each_kernel(kernels::rows_kernels(), [&](const RowsKernel &kernel) {
    Random random(7);
    for (std::size_t n = 1; n <= 150; ++n) {
      const std::size_t m = random.in<std::size_t>(1, 9), k = random.in<std::size_t>(0, n % 4 ? 20 : 300),
                        x_row = k + n % 2, w_row = n + n % 3, y_row = n + n % 5;
      Guarded<float> x((m - 1) * x_row + k), w(k == 0 ? 0 : (k - 1) * w_row + n), y((m - 1) * y_row + n);
      for (const Guarded<float> *g : {&x, &w, &y})
        for (float &v : g->span()) v = random.real(-2, 2);
      std::vector<float> of_ref(y.span().begin(), y.span().end()), want = of_ref;
      const auto step = [](std::size_t row) { return static_cast<std::ptrdiff_t>(row); };
      kernel.mixtures({x.data(), step(x_row), m, w.data(), step(w_row), n, k, y.data(), step(y_row)});
      ref.mixtures({x.data(), step(x_row), m, w.data(), step(w_row), n, k, of_ref.data(), step(y_row)});
      expect_result<float>(y, of_ref, kernel.name, "mixtures");
      for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < n; ++j) {
          SumOfProducts sum(0);
          for (std::size_t t = 0; t < k; ++t) sum.add(t, x[i * x_row + t], w[t * w_row + j]);
          want[i * y_row + j] = sum.value();
        }
      expect_result<float>(y, want, kernel.name, "mixtures by definition");
    }
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_rows),     cmocka_unit_test(test_softmax),  cmocka_unit_test(test_log_softmax),
      cmocka_unit_test(test_choices),  cmocka_unit_test(test_score),    cmocka_unit_test(test_root_mean_square),
      cmocka_unit_test(test_sums),     cmocka_unit_test(test_extremes), cmocka_unit_test(test_moments),
      cmocka_unit_test(test_products), cmocka_unit_test(test_key_products), cmocka_unit_test(test_mixtures)};
  return run_at_both_edges("rows", tests);
}
