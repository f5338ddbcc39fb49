// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm_blocks/gemm_blocks.hpp"

#include <cmath>

#include "support.hpp"

namespace qtn::test {
namespace {

using kernels::BlocksForm;
using kernels::GemmBlocksKernel;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Size {
  std::size_t m, n, k;
};

/// Activations as integers between forbidden pages, as the contract has them.
struct Rows {
  Rows(std::size_t m, const BlocksForm &form)
      : q(m * form.row_bytes()), scale(m * form.blocks()), sum(m * form.blocks()) {}

  kernels::BlocksRows rows() const { return {q.data(), scale.data(), sum.data()}; }

  Guarded<std::int8_t> q;
  Guarded<float> scale;
  Guarded<std::int32_t> sum;
};

/// Whole panels of words are read of blocks that are filled up to multiples of 8.
std::size_t filled(std::size_t depth) { return (depth + 7) / 8 * 8; }

void quantize_naively(const Rows &to, std::span<const float> a, std::size_t m, const BlocksForm &form) {
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t b = 0; b < form.blocks(); ++b) {
      const float *x = a.data() + i * form.k + b * form.block;
      bool finite = true;
      float most = 0;
      for (std::size_t k = 0; k < form.depth(b); ++k) {
        finite = finite && std::isfinite(x[k]);
        most = std::fmax(most, std::fabs(x[k]));
      }
      const float scale = finite ? most / 127 : std::numeric_limits<float>::quiet_NaN();
      const float inverse = std::isnormal(scale) ? 1 / scale : 0;
      const std::size_t number = i * form.blocks() + b;
      to.scale[number] = scale;
      to.sum[number] = 0;
      for (std::size_t k = 0; k < filled(form.depth(b)); ++k) {
        const float q = k < form.depth(b) && inverse != 0 ? std::nearbyint(x[k] * inverse) : 0.0f;
        to.q[i * form.row_bytes() + b * form.block_bytes() + k] = static_cast<std::int8_t>(q);
        to.sum[number] += static_cast<std::int32_t>(q);
      }
    }
}

struct Operands {
  Operands(Random &random, std::size_t columns, const BlocksForm &f)
      : form(f), n(columns), q(n * f.k), zero(n * f.blocks()), scale(zero.size()), bias(n) {
    const std::int64_t most = (1 << (f.bits - 1)) - 1;
    if (random.one_in(4))
      for (std::int8_t &v : q.span()) v = random.one_in(2) ? static_cast<std::int8_t>(-most - 1) : std::int8_t(most);
    else
      random.fill(q.span(), -most - 1, most);
    random.fill(zero.span(), -most - 1, most);
    for (float &s : scale.span()) s = std::exp2(random.real(-12, 3));
    for (float &b : bias.span()) b = random.real(-1, 1);
  }

  BlocksForm form;
  std::size_t n;
  Guarded<std::int8_t> q, zero;
  Guarded<float> scale, bias;
};

void fill_activations(Random &random, std::span<float> a) {
  const float size = random.one_in(5) ? 1e-41f : random.one_in(5) ? 1e30f : 2.0f;
  for (float &v : a) v = random.one_in(10) ? 0.0f : random.real(-size, size);
  if (random.one_in(6)) a[random.in<std::size_t>(0, a.size() - 1)] = random.one_in(2) ? kInfinity : std::nanf("");
  if (random.one_in(4))
    for (float &v : a) v = std::copysign(size, v);
}

/// NaN has many forms, of which operators may give any.
void with_one_nan(std::span<float> values) {
  for (float &v : values)
    if (std::isnan(v)) v = std::numeric_limits<float>::quiet_NaN();
}

void check_quantize(const GemmBlocksKernel &kernel, const Rows &want, const Guarded<float> &a, std::size_t m,
                    const BlocksForm &form, const char *what) {
  const Rows got(m, form);
  for (std::size_t i = 0; i < got.q.size(); ++i) got.q[i] = want.q[i] = static_cast<std::int8_t>(0x5A);
  quantize_naively(want, a.span(), m, form);
  kernel.quantize(got.rows(), a.data(), m, form);
  with_one_nan(got.scale.span());
  expect_result<std::int8_t>(got.q, want.q.span(), kernel.name, what);
  expect_result<float>(got.scale, want.scale.span(), kernel.name, what);
  expect_result<std::int32_t>(got.sum, want.sum.span(), kernel.name, what);
}

void check(Random &random, const GemmBlocksKernel &kernel, const Size &size, const BlocksForm &form) {
  const auto [m, n, k] = size;
  const Operands b(random, n, form);
  const bool biased = !random.one_in(4);
  char what[128];
  std::snprintf(what, sizeof what, "m=%zu n=%zu k=%zu, blocks of %zu, %d bits, zeros %d", m, n, k, form.block,
                form.bits, form.zeros);
  Guarded<float> a(m * k);
  if (m > 0) fill_activations(random, a.span());
  const Rows rows(m, form);
  check_quantize(kernel, rows, a, m, form, what);

  const auto packed = guarded_lines(kernel.packed_bytes(n, form));
  kernel.pack(packed.data(), {form, b.q.data(), b.scale.data(), b.zero.data(), biased ? b.bias.data() : nullptr, n});
  assert_int_equal(packed.written_outside(), 0);
  float lo = -kInfinity, hi = kInfinity;
  if (random.one_in(3)) lo = random.real(-1, 0), hi = random.real(0, 1);
  const std::size_t ldy = n + random.in<std::size_t>(0, 5);
  Guarded<float> y(m ? (m - 1) * ldy + n : 0);
  std::vector<float> want(y.size());
  if (!want.empty()) std::memset(want.data(), 0xA5, want.size() * sizeof(float));
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      float sum = biased ? b.bias[j] : 0.0f;
      for (std::size_t block = 0; block < form.blocks(); ++block) {
        const std::size_t number = j * form.blocks() + block;
        std::int64_t exact = 0;
        for (std::size_t c = 0; c < form.depth(block); ++c)
          exact += std::int64_t{rows.q[i * form.row_bytes() + block * form.block_bytes() + c]} *
                   (b.q[j * k + block * form.block + c] - (form.zeros ? b.zero[number] : 0));
        const float scales = rows.scale[i * form.blocks() + block] * b.scale[number];
        sum = std::fma(static_cast<float>(exact), scales, sum);
      }
      want[i * ldy + j] = sum < lo ? lo : sum > hi ? hi : sum;
    }
  with_one_nan(want);
  // All columns at once, then some panels at a time.
  for (const std::size_t columns : {n, 3 * kernel.nr}) {
    std::memset(y.data(), 0xA5, y.size() * sizeof(float));
    for (std::size_t j = 0; j < n; j += columns)
      kernel.run({form, m, std::min(columns, n - j), rows.rows(),
                  packed.data() + (j ? kernel.packed_bytes(j, form) : 0), y.data() + j,
                  static_cast<std::ptrdiff_t>(ldy), lo, hi});
    with_one_nan(y.span());
    expect_result<float>(y, want, kernel.name, what);
  }
}

/// Blocks of any length, and one scale for a column.
void check_forms(Random &random, const GemmBlocksKernel &kernel, const Size &size) {
  for (const int bits : {4, 8})
    for (const bool zeros : {false, true}) {
      check(random, kernel, size, {size.k, size.k, bits, zeros});
      check(random, kernel, size, {size.k, random.in<std::size_t>(1, 40), bits, zeros});
      check(random, kernel, size, {size.k, 16, bits, zeros});
    }
}

void test_all_tails(void **) {
  each_kernel(kernels::gemm_blocks_kernels(), [](const GemmBlocksKernel &kernel) {
    Random random(1);
    for (std::size_t m = 0; m <= 18; ++m) check_forms(random, kernel, {m, 35, 21});
    for (std::size_t n = 1; n <= 140; n += n < 35 ? 1 : 13)
      for (const std::size_t m : {1, 2, 7}) check_forms(random, kernel, {m, n, 18});
    for (std::size_t k = 1; k <= 70; ++k) check_forms(random, kernel, {1 + k % 4, 33, k});
  });
}

void test_large(void **) {
  each_kernel(kernels::gemm_blocks_kernels(), [](const GemmBlocksKernel &kernel) {
    Random random(2);
    check(random, kernel, {1, 300, 520}, {520, 32, 4, false});
    check(random, kernel, {5, 130, 999}, {999, 128, 4, true});
    check(random, kernel, {3, 200, 700}, {700, 700, 8, false});
    check(random, kernel, {2, 3, kernels::kMostInBlock}, {kernels::kMostInBlock, kernels::kMostInBlock, 8, true});
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_all_tails), cmocka_unit_test(test_large)};
  return run_at_both_edges("kernels.gemm_blocks", tests);
}
