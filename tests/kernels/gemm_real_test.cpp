// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm_real/gemm_real.hpp"

#include <algorithm>
#include <cmath>

#include "support.hpp"

namespace qtn::test {
namespace {

using kernels::GemmArgs;
using kernels::GemmRealKernel;
using kernels::GemmRealWeights;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Mostly numbers; now and then infinities, NaN, and the smallest and largest.
float any_real(Random &random, bool special) {
  if (special && random.one_in(40)) {
    const float values[] = {kInfinity, -kInfinity, std::nanf(""), -0.0f, 1e-42f, -1e-42f, 3e38f};
    return values[random.in<std::size_t>(0, 6)];
  }
  return random.real(-1.0f, 1.0f);
}

/// NaN has many forms, of which operators may give any.
std::vector<float> with_one_nan(std::span<const float> values) {
  std::vector<float> result(values.begin(), values.end());
  for (float &v : result)
    if (std::isnan(v)) v = std::numeric_limits<float>::quiet_NaN();
  return result;
}

void expect_reals(const Guarded<float> &got, const std::vector<float> &want, const char *kernel, const char *what) {
  expect_same<float>(with_one_nan(got.span()), with_one_nan(want), kernel, what);
  assert_int_equal(got.written_outside(), 0);
}

/// Columns of B one after the other, as convolutions have them, or rows, as matrix products do.
enum class Order { columns, rows };

void check(Random &random, const GemmRealKernel &kernel, std::size_t m, std::size_t n, std::size_t k, Order order) {
  const bool special = random.one_in(3);
  const std::size_t lda = k + random.in<std::size_t>(0, 5), ldy = n + random.in<std::size_t>(0, 5);
  const std::size_t ldb = (order == Order::columns ? k : n) + random.in<std::size_t>(0, 3);
  Guarded<float> a((m - 1) * lda + k, kReadSlack),
      b(((order == Order::columns ? n : k) - 1) * ldb + (order == Order::columns ? k : n));
  Guarded<float> bias(n), y((m - 1) * ldy + n);
  for (float &v : a.span()) v = any_real(random, special);
  for (float &v : b.span()) v = any_real(random, special);
  for (float &v : bias.span()) v = any_real(random, special);
  float lo = -kInfinity, hi = kInfinity;
  if (random.one_in(3)) lo = random.real(-1, 0), hi = random.real(0, 1);
  const bool has_bias = !random.one_in(4);
  const std::size_t column = order == Order::columns ? ldb : 1, row = order == Order::columns ? 1 : ldb;

  std::vector<float> want(y.size());
  std::memset(want.data(), 0xA5, want.size() * sizeof(float));
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      SumOfProducts products(has_bias ? bias[j] : 0.0f);
      for (std::size_t c = 0; c < k; ++c) products.add(c, a[i * lda + c], b[j * column + c * row]);
      const float sum = products.value();
      want[i * ldy + j] = sum < lo ? lo : sum > hi ? hi : sum;
    }

  const auto packed = guarded_lines(kernel.packed_bytes(n, 4 * k));
  kernel.pack(packed.data(), {b.data(), static_cast<std::ptrdiff_t>(column), static_cast<std::ptrdiff_t>(row),
                              has_bias ? bias.data() : nullptr, n, k});
  assert_int_equal(packed.written_outside(), 0);
  GemmArgs args{};
  args.m = m;
  args.n = n;
  args.k = 4 * k;
  args.a = reinterpret_cast<const std::uint8_t *>(a.data());
  args.lda = static_cast<std::ptrdiff_t>(4 * lda);
  args.packed = packed.data();
  args.y = y.data();
  args.ldy = static_cast<std::ptrdiff_t>(ldy);
  args.lo = lo;
  args.hi = hi;
  kernel.run(args);
  char what[96];
  std::snprintf(what, sizeof what, "m=%zu n=%zu k=%zu lda=%zu ldy=%zu", m, n, k, lda, ldy);
  expect_reals(y, want, kernel.name, what);

  if (n <= kernel.nr) return;
  std::memset(y.data(), 0xA5, y.size() * sizeof(float));  // panel by panel
  for (std::size_t j = 0; j < n; j += kernel.nr) {
    args.n = std::min(kernel.nr, n - j);
    args.packed = packed.data() + (j ? kernel.packed_bytes(j, 4 * k) : 0);
    args.y = y.data() + j;
    kernel.run(args);
  }
  expect_reals(y, want, kernel.name, what);
}

/// Kernels may take several panels at a time for one row.
std::size_t columns(Random &random, bool one_row) { return random.in<std::size_t>(1, one_row ? 300 : 70); }

/// Rows that are given a part of k at a time, from copies elsewhere, come to what whole rows do.
void check_parts(Random &random, const GemmRealKernel &kernel, bool one_row) {
  const std::size_t m = one_row ? 1 : random.in<std::size_t>(1, 40), n = columns(random, one_row);
  const std::size_t block = 128, k = random.in<std::size_t>(2, random.one_in(2) ? 60 : 600);
  const std::size_t ldy = n + random.in<std::size_t>(0, 5);
  Guarded<float> b(n * k), bias(n), y((m - 1) * ldy + n);
  std::vector<float> a(m * k), want(y.size());
  const bool special = random.one_in(3);
  for (float &v : a) v = any_real(random, special);
  for (float &v : b.span()) v = any_real(random, special);
  for (float &v : bias.span()) v = any_real(random, special);
  const float lo = random.real(-1, 0), hi = random.real(0, 1);
  std::memset(want.data(), 0xA5, want.size() * sizeof(float));
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      SumOfProducts products(bias[j]);
      for (std::size_t c = 0; c < k; ++c) products.add(c, a[i * k + c], b[j * k + c]);
      const float sum = products.value();
      want[i * ldy + j] = sum < lo ? lo : sum > hi ? hi : sum;
    }

  const auto packed = guarded_lines(kernel.packed_bytes(n, 4 * k));
  kernel.pack(packed.data(), {b.data(), static_cast<std::ptrdiff_t>(k), 1, bias.data(), n, k});
  for (std::size_t at = 0, length; at < k; at += length) {
    length = std::min(block * random.in<std::size_t>(1, 3), k - at);
    Guarded<float> rows(m * length, kReadSlack);
    for (std::size_t i = 0; i < m; ++i) std::copy_n(&a[i * k + at], length, rows.data() + i * length);
    const kernels::GemmPart part{4 * at, 4 * length};
    GemmArgs args{};
    args.m = m;
    args.n = n;
    args.k = 4 * k;
    args.a = reinterpret_cast<const std::uint8_t *>(rows.data());
    args.lda = static_cast<std::ptrdiff_t>(4 * length);
    args.packed = packed.data();
    args.y = y.data();
    args.ldy = static_cast<std::ptrdiff_t>(ldy);
    args.lo = at + length < k ? -kInfinity : lo;
    args.hi = at + length < k ? kInfinity : hi;
    args.part = &part;
    kernel.run(args);
  }
  char what[96];
  std::snprintf(what, sizeof what, "in parts: m=%zu n=%zu k=%zu", m, n, k);
  expect_reals(y, want, kernel.name, what);
}

void test_parts(void **) {
  each_kernel(kernels::gemm_real_kernels(), [](const GemmRealKernel &kernel) {
    Random random(4);
    for (int i = 0; i < 250; ++i) check_parts(random, kernel, i >= 200);
  });
}

void test_all_tails(void **) {
  each_kernel(kernels::gemm_real_kernels(), [](const GemmRealKernel &kernel) {
    Random random(1);
    for (const Order order : {Order::columns, Order::rows}) {
      for (std::size_t m = 1; m <= 45; ++m) check(random, kernel, m, 35, 13, order);
      for (std::size_t n = 1; n <= 67; ++n)
        for (std::size_t m : {1, 15}) check(random, kernel, m, n, 7, order);
      for (std::size_t k = 1; k <= 40; ++k)
        for (std::size_t m : {1, 2, 17}) check(random, kernel, m, 33, k, order);
      for (std::size_t k : {127, 128, 129, 255, 256, 257, 383})
        for (std::size_t m : {1, 5, 15}) check(random, kernel, m, 33, k, order);
    }
  });
}

void test_blocking(void **) {
  each_kernel(kernels::gemm_real_kernels(), [](const GemmRealKernel &kernel) {
    Random random(2);
    check(random, kernel, 700, 40, 33, Order::columns);
    check(random, kernel, 500, 70, 130, Order::rows);
    check(random, kernel, 90, 300, 520, Order::columns);
    check(random, kernel, 1, 300, 520, Order::rows);
  });
}

/// Strips of an image, each of some runs, whose rows overlap and lie apart as they like.
void check_image(Random &random, const GemmRealKernel &kernel, bool one_row) {
  const std::size_t n = columns(random, one_row), k = random.in<std::size_t>(1, random.one_in(4) ? 400 : 30);
  const std::size_t ldy = n + random.in<std::size_t>(0, 5), strip_count = one_row ? 1 : random.in<std::size_t>(1, 4);
  std::vector<std::vector<kernels::GemmRun>> runs(strip_count);
  Guarded<kernels::GemmStrip> strips(strip_count);
  std::size_t elements = 0, m = 0, y_rows = 0;
  for (std::size_t s = 0; s < strip_count; ++s) {
    const auto at = random.in<std::size_t>(0, 20), lda = random.in<std::size_t>(1, 20);
    const std::size_t rows = one_row ? 1 : random.in<std::size_t>(1, 30), y_step = random.in<std::size_t>(1, 3);
    std::size_t begin = random.in<std::size_t>(0, static_cast<std::int64_t>(k - 1));
    for (std::size_t r = random.in<std::size_t>(0, 5); r > 0 && begin < k; --r) {
      const auto length = random.in<std::size_t>(1, static_cast<std::int64_t>(k - begin));
      const auto from = random.in<std::size_t>(0, 80);
      runs[s].push_back({static_cast<std::ptrdiff_t>(4 * from), 4 * begin, 4 * length});
      elements = std::max(elements, at + (rows - 1) * lda + from + length);
      begin += length + random.in<std::size_t>(0, 40);
    }
    strips[s] = {static_cast<std::ptrdiff_t>(4 * at),
                 static_cast<std::ptrdiff_t>(4 * lda),
                 rows,
                 runs[s].data(),
                 runs[s].size(),
                 0,
                 y_rows,
                 y_step};
    m += rows;
    y_rows += rows * y_step;
  }
  Guarded<float> a(elements, kReadSlack), b(n * k), bias(n), y(y_rows * ldy);
  for (const Guarded<float> *values : {&a, &b, &bias})
    for (float &v : values->span()) v = random.real(-1, 1);

  std::vector<float> want(y.size());
  std::memset(want.data(), 0xA5, want.size() * sizeof(float));
  for (const kernels::GemmStrip &strip : strips.span())
    for (std::size_t i = 0; i < strip.rows; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        SumOfProducts sum(bias[j]);
        for (const kernels::GemmRun &run : std::span(strip.runs, strip.run_count)) {
          const float *row = a.data() + (strip.at + static_cast<std::ptrdiff_t>(i) * strip.lda + run.at) / 4;
          for (std::size_t c = 0, at = run.k / 4; c < run.length / 4; ++c, ++at) sum.add(at, row[c], b[j * k + at]);
        }
        want[(strip.y_row + i * strip.y_step) * ldy + j] = sum.value();
      }

  const auto packed = guarded_lines(kernel.packed_bytes(n, 4 * k));
  kernel.pack(packed.data(), {b.data(), static_cast<std::ptrdiff_t>(k), 1, bias.data(), n, k});
  const kernels::GemmImage image{strips.data(), strip_count, nullptr};
  GemmArgs args{};
  args.m = m;
  args.n = n;
  args.k = 4 * k;
  args.a = reinterpret_cast<const std::uint8_t *>(a.data());
  args.packed = packed.data();
  args.y = y.data();
  args.ldy = static_cast<std::ptrdiff_t>(ldy);
  args.lo = -kInfinity;
  args.hi = kInfinity;
  args.image = &image;
  kernel.run(args);
  char what[96];
  std::snprintf(what, sizeof what, "%zu strips, m=%zu n=%zu k=%zu", strip_count, m, n, k);
  expect_reals(y, want, kernel.name, what);
}

void test_images(void **) {
  each_kernel(kernels::gemm_real_kernels(), [](const GemmRealKernel &kernel) {
    Random random(3);
    for (int i = 0; i < 250 && kernel.image_bytes == 1; ++i) check_image(random, kernel, i >= 200);
  });
}

void test_no_rows(void **) {
  each_kernel(kernels::gemm_real_kernels(), [](const GemmRealKernel &kernel) {
    GemmArgs args{};
    args.n = 5;
    args.k = 8;
    kernel.run(args);
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_all_tails), cmocka_unit_test(test_blocking),
                              cmocka_unit_test(test_parts), cmocka_unit_test(test_images),
                              cmocka_unit_test(test_no_rows)};
  return run_at_both_edges("kernels.gemm_real", tests);
}
