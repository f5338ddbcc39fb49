// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/gemm.hpp"

#include <algorithm>
#include <numeric>
#include <span>

#include "support.hpp"

namespace qtn::test {
namespace {

using kernels::GemmArgs;
using kernels::GemmKernel;
using kernels::GemmWeights;

/// Random weights at the bound of what every kernel takes: two neighbours add up to 128 or -128 at most, their positive
/// and their negative part for themselves.
void fill_with_small_pairs(Random &random, std::span<std::int8_t> b, std::size_t ldb, bool extremes) {
  for (std::size_t at = 0; at < b.size(); ++at) {
    const std::size_t k = at % ldb;
    const int before = k > 0 ? b[at - 1] : 0;
    const int lowest = before < 0 ? -128 - before : -128, highest = before > 0 ? 128 - before : 127;
    b[at] = extremes && k % 2 ? random.one_in(2) ? lowest : highest : random.in<std::int8_t>(lowest, highest);
  }
}

/// One product with everything it reads and what it must give.
struct Case {
  std::size_t m, n, k, lda, ldb, ldy;
  Guarded<std::uint8_t> a;
  Guarded<std::int8_t> b;
  Guarded<std::int32_t> bias;
  Guarded<float> multiplier;
  QuantizedRange range;
  float lo = -std::numeric_limits<float>::infinity(), hi = std::numeric_limits<float>::infinity();
  std::vector<std::uint8_t> want_u8;
  std::vector<float> want_f32;

  Case(Random &random, const GemmKernel &kernel, std::size_t rows, std::size_t columns, std::size_t depth,
       bool extremes)
      : m(rows),
        n(columns),
        k(depth),
        lda(k + random.in<std::size_t>(0, 9)),
        ldb(k + random.in<std::size_t>(0, 3)),
        ldy(n + random.in<std::size_t>(0, 9)),
        a((m - 1) * lda + k, kReadSlack),
        b((n - 1) * ldb + k),
        bias(n),
        multiplier(n),
        range(random.range()) {
    if (extremes) {
      // The inputs on which a 16-bit intermediate saturates.
      std::memset(a.data(), 255, a.size());
      for (std::int8_t &v : b.span()) v = random.one_in(2) ? 127 : -128;
      if (random.one_in(2)) std::memset(b.data(), random.one_in(2) ? 127 : -128, b.size());
    } else {
      random.fill(a.span(), 0, 255);
      random.fill(b.span(), -128, 127);
    }
    if (!kernel.fits(weights())) fill_with_small_pairs(random, b.span(), ldb, extremes);
    random.fill(bias.span(), -100000, 100000);
    const std::int32_t zero = random.zero_point();
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t c = 0; c < k; ++c) bias[j] -= zero * b[j * ldb + c];
    const bool small = random.one_in(2);
    for (float &v : multiplier.span()) v = small ? random.real(0, 0.01f) : any_multiplier(random);
    if (random.one_in(3)) lo = random.real(-5, 0), hi = random.real(0, 5);
    want_u8.assign(m * ldy, 0xA5);
    want_f32.assign(m * ldy, -77.0f);
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        const std::int64_t acc = sum(i, j);
        want_u8[i * ldy + j] = naive_requantize(acc, multiplier[j], range);
        const float v =
            static_cast<float>(static_cast<double>(static_cast<float>(acc)) * static_cast<double>(multiplier[j]));
        want_f32[i * ldy + j] = v < lo ? lo : v > hi ? hi : v;
      }
  }

  std::int64_t sum(std::size_t i, std::size_t j) const {
    std::int64_t acc = bias[j];
    for (std::size_t c = 0; c < k; ++c) acc += std::int64_t{a[i * lda + c]} * b[j * ldb + c];
    return acc;
  }

  GemmWeights weights() const {
    return {b.data(), static_cast<std::ptrdiff_t>(ldb), bias.data(), multiplier.data(), n, k};
  }

  /// Weights of which neighbours in n lie side by side come to the same bytes.
  void check_other_order(const GemmKernel &kernel, const std::byte *want) const {
    const std::size_t row = n + 3;
    Guarded<std::int8_t> turned(k == 0 ? 0 : (k - 1) * row + n);
    for (std::size_t c = 0; c < k; ++c)
      for (std::size_t j = 0; j < n; ++j) turned[c * row + j] = b[j * ldb + c];
    const auto got = guarded_lines(kernel.packed_bytes(n, k));
    const GemmWeights w{turned.data(), 1, bias.data(), multiplier.data(), n, k, static_cast<std::ptrdiff_t>(row)};
    assert_true(kernel.fits(w));
    kernel.pack(got.data(), w);
    expect_same<std::byte>(got.span().first(kernel.packed_bytes(n, k)), {want, kernel.packed_bytes(n, k)}, kernel.name,
                           "weights in the other order");
  }

  void check(const GemmKernel &kernel) const {
    assert_true(kernel.fits(weights()));
    const auto packed = guarded_lines(kernel.packed_bytes(n, k)), scratch = guarded_lines(kernel.scratch_bytes(m, k));
    kernel.pack(packed.data(), weights());
    check_other_order(kernel, packed.data());
    char what[96];
    std::snprintf(what, sizeof what, "m=%zu n=%zu k=%zu lda=%zu ldy=%zu", m, n, k, lda, ldy);
    GemmArgs args{m,
                  n,
                  k,
                  a.data(),
                  static_cast<std::ptrdiff_t>(lda),
                  packed.data(),
                  nullptr,
                  static_cast<std::ptrdiff_t>(ldy),
                  range,
                  lo,
                  hi,
                  scratch.data()};

    const std::size_t size = (m - 1) * ldy + n;
    Guarded<std::uint8_t> y(size);
    args.y = y.data();
    kernel.run_u8(args);
    expect_result<std::uint8_t>(y, std::span(want_u8).first(size), kernel.name, what);
    args.small =
        std::all_of(multiplier.span().begin(), multiplier.span().end(), [](float v) { return v >= 0 && v < 1; });
    kernel.run_u8(args);
    expect_result<std::uint8_t>(y, std::span(want_u8).first(size), kernel.name, what);

    if (n > kernel.nr) {  // panel by panel
      GemmArgs panels = args;
      for (std::size_t j = 0; j < n; j += kernel.nr) {
        panels.n = std::min(kernel.nr, n - j);
        panels.packed = packed.data() + (j ? kernel.packed_bytes(j, k) : 0);
        panels.y = y.data() + j;
        kernel.run_u8(panels);
      }
      expect_result<std::uint8_t>(y, std::span(want_u8).first(size), kernel.name, what);
    }

    Guarded<float> f(size);
    for (float &v : f.span()) v = -77.0f;
    args.y = f.data();
    kernel.run_f32(args);
    expect_result<float>(f, std::span(want_f32).first(size), kernel.name, what);
    check_addend(kernel, args, f, what);
    check_rows(kernel, args, f, what);
    assert_int_equal(packed.written_outside(), 0);
    assert_int_equal(scratch.written_outside(), 0);
  }

  void check_addend(const GemmKernel &kernel, GemmArgs args, Guarded<float> &y, const char *what) const {
    Random random(m * 100 + n + k);
    Guarded<float> addend(round_up(n, kernel.nr));
    for (float &v : addend.span()) v = random.real(-3, 3);
    std::vector<float> want(y.size());
    for (float &v : want) v = -77.0f;
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        const volatile float product =
            static_cast<float>(sum(i, j)) * multiplier[j];  // each operation rounds by itself
        const float v = product + addend[j];
        want[i * ldy + j] = v < lo ? lo : v > hi ? hi : v;
      }
    for (float &v : y.span()) v = -77.0f;
    args.addend = addend.data();
    kernel.run_f32(args);
    expect_result<float>(y, want, kernel.name, what);
  }

  std::int64_t column_sum(std::size_t j) const { return std::accumulate(&b[j * ldb], &b[j * ldb] + k, std::int64_t{0}); }

  /// Rows with grids of their own, by the packed biases and by others in their place. What is added to each float is a
  /// sum of an int32, which never is NaN.
  void check_rows(const GemmKernel &kernel, GemmArgs args, Guarded<float> &y, const char *what) const {
    check_rows_by(kernel, args, y, bias.span(), what);
    Random random(m * 1000 + n + k + 1);
    Guarded<std::int32_t> other(n), with_shift(round_up(n, kernel.nr));
    random.fill(other.span(), -100000, 100000);
    for (std::size_t j = 0; j < n; ++j)
      with_shift[j] = other[j] + static_cast<std::int32_t>(kernel.shift * column_sum(j));
    args.bias = with_shift.data();
    check_rows_by(kernel, args, y, other.span(), what);
  }

  void check_rows_by(const GemmKernel &kernel, GemmArgs args, Guarded<float> &y, std::span<const std::int32_t> biases,
                     const char *what) const {
    Random random(m * 1000 + n + k);
    Guarded<float> scale(m), shift(round_up(n, kernel.nr));
    Guarded<std::int32_t> zero(m), sums(round_up(n, kernel.nr));
    for (float &v : scale.span()) v = random.real(1e-6f, 0.1f);
    for (float &v : shift.span()) v = random.real(-3, 3);
    random.fill(zero.span(), 0, 255);
    random.fill(sums.span(), -100000, 100000);
    std::vector<float> want(y.size());
    for (float &v : want) v = -77.0f;
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        const std::int64_t acc = sum(i, j) - bias[j] + biases[j] - std::int64_t{zero[i]} * sums[j];
        const volatile float both = scale[i] * multiplier[j];  // each operation rounds by itself
        const volatile float product = static_cast<float>(acc) * both;
        const float v = product + shift[j];
        want[i * ldy + j] = v < lo ? lo : v > hi ? hi : v;
      }
    for (float &v : y.span()) v = -77.0f;
    const kernels::GemmRows rows{scale.data(), zero.data(), sums.data(), shift.data()};
    args.rows = &rows;
    kernel.run_rows(args);
    expect_result<float>(y, want, kernel.name, what);
  }
};

void test_all_row_tails(void **) {
  each_kernel(kernels::gemm_kernels(), [](const GemmKernel &kernel) {
    Random random(1);
    for (std::size_t m = 1; m <= 70; ++m)
      for (const std::size_t k : {13, 77}) Case(random, kernel, m, 35, k, false).check(kernel);
  });
}

void test_all_column_tails(void **) {
  each_kernel(kernels::gemm_kernels(), [](const GemmKernel &kernel) {
    Random random(2);
    for (std::size_t n = 1; n <= 67; ++n)
      for (const std::size_t k : {7, 70})
        for (const std::size_t m : {1, 15, 20}) Case(random, kernel, m, n, k, false).check(kernel);
  });
}

void test_all_depth_tails(void **) {
  each_kernel(kernels::gemm_kernels(), [](const GemmKernel &kernel) {
    Random random(3);
    for (std::size_t k = 1; k <= 140; ++k)
      for (const std::size_t m : {1, 2, 3, 4, 17}) Case(random, kernel, m, 33, k, false).check(kernel);
  });
}

void test_saturation_vectors(void **) {
  each_kernel(kernels::gemm_kernels(), [](const GemmKernel &kernel) {
    Random random(4);
    for (int i = 0; i < 40; ++i)
      Case(random, kernel, random.in<std::size_t>(1, 20), random.in<std::size_t>(1, 40), random.in<std::size_t>(1, 600),
           true)
          .check(kernel);
    for (const std::size_t k : {1152, 2304, 4607, 4608}) Case(random, kernel, 17, 24, k, true).check(kernel);
  });
}

void test_random_shapes(void **) {
  each_kernel(kernels::gemm_kernels(), [](const GemmKernel &kernel) {
    Random random(5);
    for (int i = 0; i < 150; ++i)
      Case(random, kernel, random.in<std::size_t>(1, 60), random.in<std::size_t>(1, 100),
           random.in<std::size_t>(1, 150), false)
          .check(kernel);
  });
}

/// An image of several strips, each of some runs in any order, whose rows overlap and lie apart as they like, with a
/// bias of its own and rows of Y that leave others out. T is what the kernel reads.
template <class T>
void check_image(Random &random, const GemmKernel &kernel) {
  const std::size_t n = random.in<std::size_t>(1, 70), unit = kernel.run_unit, k = unit * random.in<std::size_t>(1, 30);
  const auto strip_count = random.in<std::size_t>(1, 4);
  const std::size_t bias_step = round_up(n, kernel.nr), ldy = n + random.in<std::size_t>(0, 5);

  std::vector<std::vector<kernels::GemmRun>> runs(strip_count);
  Guarded<kernels::GemmStrip> strips(strip_count);
  std::size_t elements = 0, m = 0, y_rows = 0;
  for (std::size_t s = 0; s < strip_count; ++s) {
    const auto at = random.in<std::size_t>(0, 99);
    if (s > 0 && random.one_in(2)) {  // the next line of outputs
      strips[s] = strips[s - 1];
      strips[s].at += static_cast<std::ptrdiff_t>(at * sizeof(T));
      strips[s].y_row = y_rows;
      elements += at;
      m += strips[s].rows;
      y_rows += strips[s].rows * strips[s].y_step;
      continue;
    }
    const auto lda = random.in<std::size_t>(1, 40);
    const auto rows = random.in<std::size_t>(1, 50), y_step = random.in<std::size_t>(1, 3);
    for (std::size_t r = random.in<std::size_t>(0, 5); r > 0; --r) {
      const std::size_t begin = unit * random.in<std::size_t>(0, static_cast<std::int64_t>(k / unit - 1));
      const std::size_t length = unit * random.in<std::size_t>(1, static_cast<std::int64_t>((k - begin) / unit));
      const auto from = random.in<std::size_t>(0, 300);
      runs[s].push_back({static_cast<std::ptrdiff_t>(from * sizeof(T)), begin, length});
      elements = std::max(elements, at + (rows - 1) * lda + from + length);
    }
    strips[s] = {static_cast<std::ptrdiff_t>(at * sizeof(T)),
                 static_cast<std::ptrdiff_t>(lda * sizeof(T)),
                 rows,
                 runs[s].data(),
                 runs[s].size(),
                 random.in<std::size_t>(0, 1) * bias_step,
                 y_rows,
                 y_step};
    m += rows;
    y_rows += rows * y_step;
  }
  Guarded<T> a(elements, kReadSlack);
  Guarded<std::int8_t> b(n * k);
  Guarded<std::int32_t> bias(2 * bias_step);
  Guarded<float> multiplier(n), y(y_rows * ldy);
  random.fill(a.span(), 0, 255);
  random.fill(b.span(), -128, 127);
  const std::vector<std::int32_t> no_bias(n);
  const GemmWeights weights{b.data(), static_cast<std::ptrdiff_t>(k), no_bias.data(), multiplier.data(), n, k};
  if (!kernel.fits(weights)) fill_with_small_pairs(random, b.span(), k, false);
  random.fill(bias.span(), -100000, 100000);
  for (float &v : multiplier.span()) v = any_multiplier(random);

  std::vector<float> want(y.size());
  std::memset(want.data(), 0xA5, want.size() * sizeof(float));
  for (const kernels::GemmStrip &strip : strips.span())
    for (std::size_t i = 0; i < strip.rows; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        std::int64_t acc = bias[strip.bias_at + j];
        for (const kernels::GemmRun &run : std::span(strip.runs, strip.run_count)) {
          const std::ptrdiff_t bytes = strip.at + static_cast<std::ptrdiff_t>(i) * strip.lda + run.at;
          const T *row = a.data() + bytes / static_cast<std::ptrdiff_t>(sizeof(T));
          for (std::size_t c = 0; c < run.length; ++c) acc += std::int64_t{row[c]} * b[j * k + run.k + c];
        }
        want[(strip.y_row + i * strip.y_step) * ldy + j] =
            static_cast<float>(static_cast<double>(static_cast<float>(acc)) * static_cast<double>(multiplier[j]));
      }

  const auto packed = guarded_lines(kernel.packed_bytes(n, k));
  kernel.pack(packed.data(), weights);
  const kernels::GemmImage image{strips.data(), strip_count, bias.data()};
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const GemmArgs args{m,         n,
                      k,         reinterpret_cast<const std::uint8_t *>(a.data()),
                      0,         packed.data(),
                      y.data(),  static_cast<std::ptrdiff_t>(ldy),
                      {},        -kInfinity,
                      kInfinity, nullptr,
                      false,     &image};
  kernel.run_f32(args);
  char what[96];
  std::snprintf(what, sizeof what, "%zu strips, m=%zu n=%zu k=%zu", strip_count, m, n, k);
  expect_result<float>(y, want, kernel.name, what);
}

void test_images(void **) {
  each_kernel(kernels::gemm_kernels(), [](const GemmKernel &kernel) {
    Random random(8);
    for (int i = 0; i < 200; ++i) {
      if (kernel.image_bytes == 1) check_image<std::uint8_t>(random, kernel);
      if (kernel.image_bytes == 2) check_image<std::uint16_t>(random, kernel);
    }
  });
}

/// Two weights by two elements of 255.
float product_of_pair(const GemmKernel &kernel, const GemmWeights &w) {
  const std::vector<std::uint8_t> a(2 + kReadSlack, 255);
  AlignedBuffer packed(kernel.packed_bytes(1, 2)), scratch(kernel.scratch_bytes(1, 2));
  kernel.pack(packed.data(), w);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float y = 0;
  kernel.run_f32({1, 1, 2, a.data(), 2, packed.data(), &y, 1, {}, -kInfinity, kInfinity, scratch.data()});
  return y;
}

/// Pairs of weights at the bound of 16-bit sums and just beyond: what a kernel refuses is what it gets wrong.
void test_fitting_weights(void **) {
  each_kernel(kernels::gemm_kernels(), [](const GemmKernel &kernel) {
    const std::vector<std::int32_t> bias(3);
    const std::vector<float> multiplier(3, 1.0f);
    for (const auto &[first, second] : std::initializer_list<std::pair<int, int>>{{127, 1},
                                                                                  {127, 2},
                                                                                  {1, 127},
                                                                                  {64, 64},
                                                                                  {64, 65},
                                                                                  {127, 127},
                                                                                  {127, -128},
                                                                                  {0, -128},
                                                                                  {-1, -128},
                                                                                  {-64, -64},
                                                                                  {-65, -64},
                                                                                  {-128, -128}}) {
      const std::int8_t pair[] = {static_cast<std::int8_t>(first), static_cast<std::int8_t>(second)};
      const bool fits = kernel.fits({pair, 2, bias.data(), multiplier.data(), 1, 2});
      assert_int_equal(product_of_pair(kernel, {pair, 2, bias.data(), multiplier.data(), 1, 2}) ==
                           static_cast<float>(255 * (first + second)),
                       fits);
      // In the middle of three columns of five; between them is what would not fit.
      constexpr std::size_t kDepth = 5, kStride = 7;
      std::vector<std::int8_t> b(3 * kStride, 127);
      for (std::size_t j = 0; j < 3; ++j) std::memset(&b[j * kStride], 0, kDepth);
      const GemmWeights three{b.data(), kStride, bias.data(), multiplier.data(), 3, kDepth};
      std::memcpy(&b[kStride + 2], pair, 2);
      assert_int_equal(kernel.fits(three), fits);
      // Runs of an image may make a pair of any two.
      std::memset(&b[kStride], 0, kDepth);
      std::memcpy(&b[kStride + 1], pair, 2);
      assert_int_equal(kernel.fits(three), fits);
    }
  });
}

/// Large enough for every loop of blocking to turn more than once.
void test_blocking(void **) {
  each_kernel(kernels::gemm_kernels(), [](const GemmKernel &kernel) {
    Random random(6);
    Case(random, kernel, 700, 40, 130, false).check(kernel);
    Case(random, kernel, 1000, 70, 520, false).check(kernel);
    Case(random, kernel, 90, 300, 2100, false).check(kernel);
  });
}

void test_no_rows(void **) {
  each_kernel(kernels::gemm_kernels(), [](const GemmKernel &kernel) {
    Random random(7);
    const Case c(random, kernel, 1, 5, 8, false);
    AlignedBuffer packed(kernel.packed_bytes(5, 8)), scratch(kernel.scratch_bytes(1, 8));
    kernel.pack(packed.data(), c.weights());
    const GemmArgs args{0, 5, 8, c.a.data(), 8, packed.data(), nullptr, 5, c.range, 0, 1, scratch.data()};
    kernel.run_u8(args);
    kernel.run_f32(args);
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_all_row_tails),   cmocka_unit_test(test_all_column_tails),
      cmocka_unit_test(test_all_depth_tails), cmocka_unit_test(test_saturation_vectors),
      cmocka_unit_test(test_random_shapes),   cmocka_unit_test(test_blocking),
      cmocka_unit_test(test_images),          cmocka_unit_test(test_no_rows),
      cmocka_unit_test(test_fitting_weights),
  };
  return run_at_both_edges("kernels.gemm", tests);
}
