// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm_codes/gemm_codes.hpp"

#include <bit>
#include <cmath>

#include "kernels/kernel.hpp"
#include "support.hpp"

namespace qtn::test {
namespace {

using kernels::CodesForm;
using kernels::GemmCodesKernel;
using kernels::GemmRealKernel;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Size {
  std::size_t m, n, k;
};

/// Weights between forbidden pages, and the floats that they stand for.
struct Operands {
  Operands(Random &random, const Size &size, const CodesForm &f)
      : form(f),
        n(size.n),
        q(n * f.k),
        zero(n * f.blocks()),
        scale(zero.size()),
        bias(n),
        w(q.size()) {
    const std::int64_t most = (1 << (f.bits - 1)) - 1;
    random.fill(q.span(), -most - 1, most);
    random.fill(zero.span(), -most - 1, most);
    for (float &s : scale.span()) {
      s = random.one_in(20) ? kernels::kLeastScale : std::exp2(random.real(-12, 3));
      if (random.one_in(4)) s = -s;
    }
    for (float &b : bias.span()) b = random.real(-1, 1);
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t i = 0; i < f.k; ++i) {
        const std::size_t block = j * f.blocks() + i / f.block;
        w[j * f.k + i] = static_cast<float>(q[j * f.k + i] - (f.zeros ? zero[block] : 0)) * scale[block];
      }
  }

  kernels::CodesWeights weights(bool biased) const {
    return {form, q.data(), scale.data(), zero.data(), biased ? bias.data() : nullptr, n};
  }

  CodesForm form;
  std::size_t n;
  Guarded<std::int8_t> q, zero;
  Guarded<float> scale, bias;
  std::vector<float> w;  ///< [n][k]
};

void check_run(Random &random, const GemmCodesKernel &kernel, const Operands &b, const std::byte *packed, std::size_t m,
               bool biased, const char *what) {
  const std::size_t n = b.n, k = b.form.k;
  const std::size_t lda = k + random.in<std::size_t>(0, 5), ldy = n + random.in<std::size_t>(0, 5);
  Guarded<float> a(m ? (m - 1) * lda + k : 0), y(m ? (m - 1) * ldy + n : 0);
  for (float &v : a.span()) v = random.one_in(200) ? kInfinity : random.real(-1, 1);
  float lo = -kInfinity, hi = kInfinity;
  if (random.one_in(3)) lo = random.real(-1, 0), hi = random.real(0, 1);
  std::vector<float> want(y.size(), std::bit_cast<float>(0xA5A5A5A5u));
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      SumOfProducts products(biased ? b.bias[j] : 0.0f);
      for (std::size_t c = 0; c < k; ++c) products.add(c, a[i * lda + c], b.w[j * k + c]);
      const float sum = products.value();
      want[i * ldy + j] = sum < lo ? lo : sum > hi ? hi : sum;
    }
  // NaN has many forms, of which operators may give any.
  const auto with_one_nan = [](std::span<float> values) {
    for (float &v : values)
      if (std::isnan(v)) v = std::numeric_limits<float>::quiet_NaN();
  };
  with_one_nan(want);
  // All columns at once, then some panels at a time.
  for (const std::size_t columns : {n, 3 * kernel.nr}) {
    std::memset(y.data(), 0xA5, y.size() * sizeof(float));
    for (std::size_t j = 0; j < n; j += columns)
      kernel.run({b.form, m, std::min(columns, n - j), a.data(), static_cast<std::ptrdiff_t>(lda),
                  packed + (j ? kernel.packed_bytes(j, b.form) : 0), y.data() + j, static_cast<std::ptrdiff_t>(ldy), lo,
                  hi});
    with_one_nan(y.span());
    expect_result<float>(y, want, kernel.name, what);
  }
}

/// What unpack() fills in is what a kernel of floats packs.
void check_unpack(const GemmCodesKernel &kernel, const GemmRealKernel &reals, const Operands &b,
                  const std::byte *packed, bool biased, const char *what) {
  const std::size_t n = b.n, k = b.form.k;
  const auto want = guarded_lines(reals.packed_bytes(n, 4 * k)), got = guarded_lines(reals.packed_bytes(n, 4 * k));
  reals.pack(want.data(), {b.w.data(), static_cast<std::ptrdiff_t>(k), 1, biased ? b.bias.data() : nullptr, n, k});
  const std::vector<float> others(std::max(n * k, n), -1e30f);  // in each place that unpack() has to fill in
  reals.pack(got.data(), {others.data(), static_cast<std::ptrdiff_t>(k), 1, others.data(), n, k});
  for (std::size_t j = 0; j < n; j += kernel.nr)
    kernel.unpack(reals.panel(got.data(), n, k, j), packed + (j ? kernel.packed_bytes(j, b.form) : 0), b.form);
  expect_result<std::byte>(got, want.span(), kernel.name, what);
}

void check(Random &random, const GemmCodesKernel &kernel, const Size &size, const CodesForm &form) {
  const Operands b(random, size, form);
  const bool biased = !random.one_in(4);
  const auto packed = guarded_lines(kernel.packed_bytes(b.n, form));
  kernel.pack(packed.data(), b.weights(biased));
  assert_int_equal(packed.written_outside(), 0);
  char what[128];
  std::snprintf(what, sizeof what, "m=%zu n=%zu k=%zu, blocks of %zu, %d bits, zeros %d", size.m, size.n,
                size.k, form.block, form.bits, form.zeros);
  check_run(random, kernel, b, packed.data(), size.m, biased, what);
  check_unpack(kernel, kernels::choose(kernels::gemm_real_kernels(), kernel.isa), b, packed.data(), biased, what);
}

/// Blocks of some words, and one scale for a column.
void check_forms(Random &random, const GemmCodesKernel &kernel, const Size &size) {
  for (const int bits : {4, 8})
    for (const bool zeros : {false, true}) {
      check(random, kernel, size, {size.k, size.k, bits, zeros});
      const auto words = random.in<std::size_t>(1, 4);
      check(random, kernel, size, {size.k, words * 32 / static_cast<std::size_t>(bits), bits, zeros});
    }
}

void test_all_tails(void **) {
  each_kernel(kernels::gemm_codes_kernels(), [](const GemmCodesKernel &kernel) {
    Random random(1);
    for (std::size_t m = 0; m <= 13; ++m) check_forms(random, kernel, {m, 35, 21});
    for (std::size_t n = 1; n <= 140; n += n < 35 ? 1 : 13)
      for (const std::size_t m : {1, 2, 7}) check_forms(random, kernel, {m, n, 18});
    for (std::size_t k = 1; k <= 70; ++k) check_forms(random, kernel, {1 + k % 3, 33, k});
    for (std::size_t k : {127, 128, 129, 255, 257, 384}) check_forms(random, kernel, {1 + k % 9, 33, k});
  });
}

void test_large(void **) {
  each_kernel(kernels::gemm_codes_kernels(), [](const GemmCodesKernel &kernel) {
    Random random(2);
    check(random, kernel, {1, 300, 520}, {520, 32, 4, false});
    check(random, kernel, {5, 130, 999}, {999, 128, 4, true});
    check(random, kernel, {3, 200, 700}, {700, 700, 8, false});
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_all_tails), cmocka_unit_test(test_large)};
  return run_at_both_edges("kernels.gemm_codes", tests);
}
