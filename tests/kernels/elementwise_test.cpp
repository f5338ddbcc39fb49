// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise/elementwise.hpp"

#include "support.hpp"

namespace qtn::test {
namespace {

using kernels::BinaryArgs;
using kernels::BinaryKernel;

/// How an operand is read.
enum class Operand { dense, strided, one_row, one_per_row, scalar };

struct Strides {
  std::ptrdiff_t row, step;
};

Strides strides(Operand o, std::size_t columns) {
  switch (o) {
    case Operand::dense:
      return {static_cast<std::ptrdiff_t>(columns), 1};
    case Operand::strided:
      return {static_cast<std::ptrdiff_t>(columns) + 5, 1};
    case Operand::one_row:
      return {0, 1};
    case Operand::one_per_row:
      return {1, 0};
    case Operand::scalar:
      return {0, 0};
  }
  return {};
}

float rounded(double v) { return static_cast<float>(v); }

struct Case {
  std::size_t rows, columns;
  Strides sa, sb;
  std::ptrdiff_t y_row;
  Guarded<std::uint8_t> a, b;
  std::int32_t za, zb;
  float ma, mb;
  QuantizedRange range;

  static std::size_t size(Strides s, std::size_t rows, std::size_t columns) {
    return (rows - 1) * static_cast<std::size_t>(s.row) + (columns - 1) * static_cast<std::size_t>(s.step) + 1;
  }

  Case(Random &random, std::size_t r, std::size_t c, Operand oa, Operand ob)
      : rows(r),
        columns(c),
        sa(strides(oa, c)),
        sb(strides(ob, c)),
        y_row(static_cast<std::ptrdiff_t>(c) + (random.one_in(2) ? 0 : 7)),
        a(size(sa, r, c)),
        b(size(sb, r, c)),
        za(random.zero_point()),
        zb(random.zero_point()),
        ma(any_multiplier(random)),
        mb(any_multiplier(random)),
        range(random.range()) {
    if (random.one_in(3)) mb = -mb;
    random.fill(a.span(), 0, 255);
    random.fill(b.span(), 0, 255);
  }

  void check(const BinaryKernel &kernel) const {
    const std::size_t size = (rows - 1) * static_cast<std::size_t>(y_row) + columns;
    char what[96];
    std::snprintf(what, sizeof what, "rows=%zu columns=%zu a(%td,%td) b(%td,%td) y_row=%td", rows, columns, sa.row,
                  sa.step, sb.row, sb.step, y_row);
    for (const bool product : {false, true}) {
      std::vector<std::uint8_t> want(size, 0xA5);
      for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j) {
          const auto r = static_cast<std::ptrdiff_t>(i), c = static_cast<std::ptrdiff_t>(j);
          const std::int64_t da = a.data()[r * sa.row + c * sa.step] - za, db = b.data()[r * sb.row + c * sb.step] - zb;
          const double fa = static_cast<double>(da), fb = static_cast<double>(db), wide_a = ma, wide_b = mb;
          const float sum =
              rounded(static_cast<double>(rounded(fa * wide_a)) + static_cast<double>(rounded(fb * wide_b)));
          want[static_cast<std::size_t>(r * y_row + c)] =
              naive_quantize(static_cast<double>(product ? rounded(fa * fb * wide_a) : sum), range);
        }
      Guarded<std::uint8_t> y(size);
      const BinaryArgs args{rows,    columns, a.data(), b.data(), y.data(), sa.row, sb.row, y_row,
                            sa.step, sb.step, za,       zb,       ma,       mb,     range};
      (product ? kernel.mul : kernel.add)(args);
      expect_result<std::uint8_t>(y, want, kernel.name, what);
    }
  }
};

constexpr Operand kOperands[] = {Operand::dense, Operand::strided, Operand::one_row, Operand::one_per_row,
                                 Operand::scalar};

void test_all_tails_and_strides(void **) {
  each_kernel(kernels::binary_kernels(), [](const BinaryKernel &kernel) {
    Random random(1);
    for (std::size_t columns = 1; columns <= 140; ++columns)
      Case(random, random.in<std::size_t>(1, 3), columns, Operand::dense, Operand::dense).check(kernel);
    for (Operand a : kOperands)
      for (Operand b : kOperands)
        for (int i = 0; i < 100; ++i)
          Case(random, random.in<std::size_t>(1, 5), random.in<std::size_t>(1, 200), a, b).check(kernel);
  });
}

/// Every pair of bytes, at scales where many sums fall on a tie.
void test_all_values(void **) {
  each_kernel(kernels::binary_kernels(), [](const BinaryKernel &kernel) {
    Random random(2);
    for (float scale : {0.5f, 1.0f, 0.7f}) {
      Case c(random, 256, 256, Operand::one_per_row, Operand::one_row);
      for (std::size_t i = 0; i < 256; ++i) c.a[i] = c.b[i] = static_cast<std::uint8_t>(i);
      c.ma = scale, c.mb = -scale, c.range = {128, 0, 255};
      c.check(kernel);
    }
  });
}

void test_in_place(void **) {
  each_kernel(kernels::binary_kernels(), [](const BinaryKernel &kernel) {
    Random random(3);
    for (std::size_t n : {1, 31, 64, 100, 777}) {
      Guarded<std::uint8_t> a(n), b(n), want(n);
      random.fill(a.span(), 0, 255);
      random.fill(b.span(), 0, 255);
      const auto stride = static_cast<std::ptrdiff_t>(n);
      BinaryArgs args{1, n, a.data(), b.data(), want.data(), stride, stride,      stride,
                      1, 1, 7,        9,        0.3f,        0.6f,   {12, 0, 255}};
      kernel.add(args);
      args.y = a.data();
      kernel.add(args);
      expect_result<std::uint8_t>(a, want.span(), kernel.name, "in place");
    }
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_all_tails_and_strides), cmocka_unit_test(test_all_values),
                              cmocka_unit_test(test_in_place)};
  return run_at_both_edges("kernels.elementwise", tests);
}
