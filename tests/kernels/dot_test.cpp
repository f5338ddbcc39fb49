// SPDX-License-Identifier: Apache-2.0
#include "kernels/dot/dot.hpp"

#include "support.hpp"

namespace qtn::test {
namespace {

using kernels::DotArgs;
using kernels::DotKernel;

/// Bytes of either signedness by value.
std::int64_t value(std::uint8_t byte, bool is_signed) { return is_signed ? static_cast<std::int8_t>(byte) : byte; }

struct Case {
  std::size_t m, n, k, ldx, ldw, ldy;
  bool signed_w;
  Guarded<std::uint8_t> x, w;
  std::int32_t zx;
  Guarded<std::int32_t> zw, bias, x_sum;
  Guarded<float> multiplier, addend;
  bool has_zw, has_bias, has_addend;

  Case(Random &random, std::size_t rows, std::size_t columns, std::size_t depth, bool is_signed_w, bool extremes)
      : m(rows),
        n(columns),
        k(depth),
        ldx(k + random.in<std::size_t>(0, 5)),
        ldw(k + random.in<std::size_t>(0, 5)),
        ldy(n + random.in<std::size_t>(0, 5)),
        signed_w(is_signed_w),
        x((m - 1) * ldx + k),
        w((n - 1) * ldw + k),
        zx(random.zero_point() - (signed_w ? 0 : 128)),
        zw(n),
        bias(n),
        x_sum(m),
        multiplier(n),
        addend(n),
        has_zw(random.one_in(2)),
        has_bias(random.one_in(2)),
        has_addend(random.one_in(2)) {
    random.fill(x.span(), 0, 255);
    random.fill(w.span(), 0, 255);
    if (extremes) {
      // The inputs on which a 16-bit intermediate saturates, and sums as far from 0 as they come.
      std::memset(x.data(), signed_w ? 255 : 128, x.size());
      std::memset(w.data(), signed_w ? 128 : 255, w.size());
      zx = signed_w ? 0 : 127;
    }
    for (std::int32_t &v : zw.span()) v = random.zero_point() - (signed_w ? 128 : 0);
    random.fill(bias.span(), -100000, 100000);
    for (std::size_t j = 0; j < n; ++j) multiplier[j] = any_multiplier(random), addend[j] = random.real(-5, 5);
    std::memset(x_sum.data(), 0, m * sizeof(std::int32_t));
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t c = 0; c < k; ++c) x_sum[i] += static_cast<std::int32_t>(value(x[i * ldx + c], !signed_w));
  }

  void check(const DotKernel &kernel) const {
    char what[128];
    std::snprintf(what, sizeof what, "%zux%zux%zu signed_w=%d zx=%d zw=%d", m, n, k, signed_w, zx, has_zw);
    std::vector<float> want((m - 1) * ldy + n);
    std::memset(want.data(), 0xA5, want.size() * sizeof(float));
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        std::int64_t acc = has_bias ? bias[j] : 0;
        for (std::size_t c = 0; c < k; ++c)
          acc += (value(x[i * ldx + c], !signed_w) - zx) * (value(w[j * ldw + c], signed_w) - (has_zw ? zw[j] : 0));
        const auto product =
            static_cast<float>(static_cast<double>(static_cast<float>(acc)) * static_cast<double>(multiplier[j]));
        want[i * ldy + j] =
            has_addend ? static_cast<float>(static_cast<double>(product) + static_cast<double>(addend[j])) : product;
      }
    Guarded<float> y(want.size());
    const auto stride = [](std::size_t v) { return static_cast<std::ptrdiff_t>(v); };
    kernel.run({m, n, k, x.data(), stride(ldx), w.data(), stride(ldw), signed_w, zx, has_zw ? zw.data() : nullptr,
                x_sum.data(), has_bias ? bias.data() : nullptr, multiplier.data(), has_addend ? addend.data() : nullptr,
                y.data(), stride(ldy)});
    expect_result<float>(y, want, kernel.name, what);
    for (std::size_t i = 0; i < m; ++i) assert_int_equal(kernel.sum(x.data() + i * ldx, k, !signed_w), x_sum[i]);
  }
};

void test_all_depths(void **) {
  each_kernel(kernels::dot_kernels(), [](const DotKernel &kernel) {
    Random random(1);
    for (std::size_t k = 1; k <= 200; ++k)
      for (const bool signed_w : {false, true})
        Case(random, random.in<std::size_t>(1, 6), random.in<std::size_t>(1, 9), k, signed_w, false).check(kernel);
  });
}

void test_all_tiles(void **) {
  each_kernel(kernels::dot_kernels(), [](const DotKernel &kernel) {
    Random random(2);
    for (std::size_t m = 1; m <= 13; ++m)
      for (std::size_t n = 1; n <= 13; ++n)
        for (const bool signed_w : {false, true})
          Case(random, m, n, random.in<std::size_t>(1, 150), signed_w, false).check(kernel);
  });
}

/// Enough columns, and columns long enough, for blocks to end within and between them.
void test_random_shapes(void **) {
  each_kernel(kernels::dot_kernels(), [](const DotKernel &kernel) {
    Random random(4);
    for (int i = 0; i < 60; ++i)
      for (const bool signed_w : {false, true}) {
        const auto m = random.in<std::size_t>(1, 12), n = random.in<std::size_t>(1, 150);
        Case(random, m, n, random.in<std::size_t>(1, random.one_in(6) ? 4608 : 300), signed_w, false).check(kernel);
      }
  });
}

/// The largest sums whose parts leave int32 on the way.
void test_saturation_vectors(void **) {
  each_kernel(kernels::dot_kernels(), [](const DotKernel &kernel) {
    Random random(3);
    for (const std::size_t k : {64, 1000, 33000})
      for (const bool signed_w : {false, true})
        for (int i = 0; i < 4; ++i) Case(random, 5, 6, k, signed_w, true).check(kernel);
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_all_depths), cmocka_unit_test(test_all_tiles),
                              cmocka_unit_test(test_random_shapes), cmocka_unit_test(test_saturation_vectors)};
  return run_at_both_edges("kernels.dot", tests);
}
