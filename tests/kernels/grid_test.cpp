// SPDX-License-Identifier: Apache-2.0
#include "kernels/grid/grid.hpp"

#include <algorithm>

#include "support.hpp"

namespace qtn::test {
namespace {

using kernels::Cell;
using kernels::FloatRange;
using kernels::GridKernel;
using kernels::GridPer;

constexpr Cell kCells[] = {Cell::u8, Cell::i8, Cell::u16, Cell::i16, Cell::i32, Cell::u4, Cell::i4, Cell::u2, Cell::i2};
constexpr Rounding kRoundings[] = {Rounding::reciprocal, Rounding::division, Rounding::half_away};
constexpr GridPer kPer[] = {GridPer::array, GridPer::row, GridPer::column};
constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

std::int64_t lowest(Cell c) { return kernels::cell_signed(c) ? -(std::int64_t{1} << (kernels::cell_bits(c) - 1)) : 0; }
std::int64_t highest(Cell c) { return lowest(c) + (std::int64_t{1} << kernels::cell_bits(c)) - 1; }

/// The bits of cell `j`, put in or taken out one by one.
void put(std::span<std::uint8_t> row, Cell cell, std::size_t j, std::int64_t q) {
  const std::size_t bits = kernels::cell_bits(cell);
  for (std::size_t b = 0; b < bits; ++b) {
    const std::size_t at = j * bits + b;
    const auto bit = static_cast<std::uint8_t>(1u << at % 8);
    if (static_cast<std::uint64_t>(q) >> b & 1)
      row[at / 8] |= bit;
    else
      row[at / 8] &= static_cast<std::uint8_t>(~bit);
  }
}
std::int64_t get(std::span<const std::uint8_t> row, Cell cell, std::size_t j) {
  const std::size_t bits = kernels::cell_bits(cell);
  std::int64_t q = 0;
  for (std::size_t b = 0; b < bits; ++b) q |= std::int64_t{row[(j * bits + b) / 8] >> (j * bits + b) % 8 & 1} << b;
  return q > highest(cell) ? q - (std::int64_t{1} << bits) : q;
}

/// The formulas of base/rounding.hpp. A product or quotient of floats rounded to float is that of doubles rounded
/// twice: 53 bits are enough for the first rounding to do no harm.
std::int64_t naive_to_grid(float x, Rounding rounding, float factor, std::int64_t zero, std::int64_t lo,
                           std::int64_t hi) {
  const double a = static_cast<double>(x), f = static_cast<double>(factor);
  const auto scaled = static_cast<float>(rounding == Rounding::reciprocal ? a * f : a / f);
  if (std::isnan(scaled)) return std::clamp(zero, lo, hi);
  if (std::abs(scaled) >= 1e12f) return scaled < 0 ? lo : hi;
  const std::int64_t q = rounding == Rounding::half_away ? std::llround(scaled) : std::llrint(scaled);
  return std::clamp(q + zero, lo, hi);
}
float naive_from_grid(std::int64_t q, bool divide, float factor, std::int64_t zero) {
  const auto steps = static_cast<double>(static_cast<float>(q - zero)), f = static_cast<double>(factor);
  return static_cast<float>(divide ? steps / f : steps * f);
}

float any_float(Random &random, float scale) {
  switch (random.in(0, 19)) {
    case 0:
      return random.one_in(4) ? kNan : 0.0f;
    case 1:
      return random.one_in(2) ? kInfinity : -kInfinity;
    case 2:
      return random.one_in(2) ? 3.4e38f : -3.4e38f;
    case 3:
      return random.one_in(2) ? 1e-42f : -0.0f;
    case 4:
    case 5:
    case 6:
      return (static_cast<float>(random.in(-300, 300)) + 0.5f) * scale;  // ties
    case 7:
      return static_cast<float>(random.in(-140000, 140000)) * 0.5f * scale;
    case 8:
      return random.real(-3e9f, 3e9f) * scale;
    default:
      return random.real(-200, 200) * scale;
  }
}

float any_scale(Random &random) {
  switch (random.in(0, 9)) {
    case 0:
      return 1.0f;
    case 1:
      return 0.5f;
    case 2:
      return 1e-38f;
    case 3:
      return 1e-42f;  // its inverse is infinite
    case 4:
      return 3e38f;  // its inverse is denormal
    default:
      return std::exp2(random.real(-12.0f, 4.0f));
  }
}

struct Case {
  std::size_t rows, columns;
  Cell cell;
  Rounding rounding;
  GridPer per;
  std::vector<float> scale, factor;
  std::vector<std::int32_t> zero;
  std::int32_t lo, hi;

  Case(Random &random, Cell c, Rounding r, GridPer p, std::size_t row_count, std::size_t column_count)
      : rows(row_count),
        columns(column_count),
        cell(c),
        rounding(r),
        per(p),
        lo(static_cast<std::int32_t>(lowest(c))),
        hi(static_cast<std::int32_t>(highest(c))) {
    const std::size_t count = p == GridPer::array ? 1 : p == GridPer::row ? rows : columns;
    for (std::size_t i = 0; i < count; ++i) {
      scale.push_back(any_scale(random));
      factor.push_back(r == Rounding::reciprocal ? 1.0f / scale[i] : scale[i]);
      zero.push_back(random.one_in(3) ? 0 : random.one_in(4) ? lo : random.one_in(4) ? hi : random.in(lo, hi));
    }
    if (random.one_in(3)) {
      lo = random.in(lo, hi);
      hi = random.in(lo, hi);
    }
  }

  std::size_t at(std::size_t i, std::size_t j) const { return per == GridPer::array ? 0 : per == GridPer::row ? i : j; }

  void check(Random &random, const GridKernel &kernel, bool stream) const {
    char what[128];
    std::snprintf(what, sizeof what, "cell %d rounding %d per %d rows=%zu columns=%zu", static_cast<int>(cell),
                  static_cast<int>(rounding), static_cast<int>(per), rows, columns);
    const std::size_t row_bytes = kernels::cell_row_bytes(cell, columns), n = rows * columns;
    const Guarded<float> factors(factor);
    const Guarded<std::int32_t> zeros(zero);
    Guarded<float> x(n);
    const auto some_float = random.one_in(2) ? tame_float : any_float;
    for (std::size_t i = 0; i < n; ++i) x[i] = some_float(random, scale[at(i / columns, i % columns)]);
    Guarded<std::uint8_t> q(rows * row_bytes);
    std::vector<std::uint8_t> want(q.size());
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j)
        put(std::span(want).subspan(i * row_bytes), cell, j,
            naive_to_grid(x[i * columns + j], rounding, factor[at(i, j)], zero[at(i, j)], lo, hi));
    kernel.quantize(
        {rows, columns, x.data(), q.data(), cell, rounding, per, factors.data(), zeros.data(), lo, hi, stream});
    expect_result<std::uint8_t>(q, want, kernel.name, what);

    for (std::uint8_t &byte : q.span()) byte = random.in<std::uint8_t>(0, 255);
    const bool divide = rounding == Rounding::reciprocal;
    Guarded<float> back(n);
    std::vector<float> reals(n);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j)
        reals[i * columns + j] =
            naive_from_grid(get(q.span().subspan(i * row_bytes), cell, j), divide, factor[at(i, j)], zero[at(i, j)]);
    kernel.dequantize({rows, columns, q.data(), back.data(), cell, divide, per, factors.data(), zeros.data(), stream});
    for (std::size_t i = 0; i < n; ++i)
      if (std::isnan(reals[i]) && std::isnan(back[i])) reals[i] = back[i];  // 0 / 0: any NaN will do
    expect_result<float>(back, reals, kernel.name, what);
  }
};

/// Every cell, rule and kind of parameters, at every length about a few vectors.
void test_all_lengths(void **) {
  each_kernel(kernels::grid_kernels(), [](const GridKernel &kernel) {
    Random random(1);
    for (const Cell cell : kCells)
      for (const Rounding rounding : kRoundings)
        for (const GridPer per : kPer)
          for (std::size_t n = 0; n <= 130; ++n) {
            const Case one(random, cell, rounding, per, 1, n);
            if (n > 0 || per != GridPer::column) one.check(random, kernel, random.one_in(2));
          }
  });
}

void test_rows(void **) {
  each_kernel(kernels::grid_kernels(), [](const GridKernel &kernel) {
    Random random(2);
    for (const Cell cell : kCells)
      for (const Rounding rounding : kRoundings)
        for (const GridPer per : kPer)
          for (const std::size_t columns : {1, 2, 9, 16, 31, 32, 64, 67, 128, 133})
            Case(random, cell, rounding, per, random.in<std::size_t>(2, 6), columns).check(random, kernel, false);
  });
}

/// Whole lines from an aligned start: the stores that go around the caches.
void test_streams(void **) {
  each_kernel(kernels::grid_kernels(), [](const GridKernel &kernel) {
    Random random(3);
    for (const Cell cell : kCells)
      for (const GridPer per : kPer)
        for (const std::size_t columns : {512, 640})
          Case(random, cell, Rounding::reciprocal, per, 8, columns).check(random, kernel, true);
  });
}

/// Integers of 32 bits under far zero points: neither the sum nor the difference fits.
void test_wide_zero_points(void **) {
  each_kernel(kernels::grid_kernels(), [](const GridKernel &kernel) {
    constexpr std::int32_t lo = std::numeric_limits<std::int32_t>::min(), hi = std::numeric_limits<std::int32_t>::max();
    constexpr std::int32_t zeros[] = {lo, -2000000000, -1, 0, 1, 2000000000, hi};
    std::vector<float> x;
    for (const float v :
         {0.0f, 1.0f, 2.5f, 1e9f, 2147483520.0f, 2147483648.0f, 3e9f, 4.2e9f, 4294967296.0f, 5e9f, 1e30f})
      x.push_back(v), x.push_back(-v);
    x.insert(x.end(), {kInfinity, -kInfinity, kNan, kNan, 0.5f, 1.5f, -0.5f, 16777217.0f, 3.5f, 7.5f});
    const float one = 1;
    for (const std::int32_t zero : zeros) {
      std::vector<std::int32_t> q(x.size()), want(x.size());
      for (std::size_t i = 0; i < x.size(); ++i)
        want[i] = static_cast<std::int32_t>(naive_to_grid(x[i], Rounding::reciprocal, one, zero, lo, hi));
      kernel.quantize({1, x.size(), x.data(), q.data(), Cell::i32, Rounding::reciprocal, GridPer::array, &one, &zero,
                       lo, hi, false});
      expect_same<std::int32_t>(q, want, kernel.name, "far zero point");
      std::vector<float> back(x.size()), reals(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) reals[i] = naive_from_grid(q[i], false, one, zero);
      kernel.dequantize({1, x.size(), q.data(), back.data(), Cell::i32, false, GridPer::array, &one, &zero, false});
      expect_same<float>(back, reals, kernel.name, "far zero point");
    }
  });
}

/// The pair on which the rules of PyTorch and ONNX differ.
void test_rules_differ(void **) {
  each_kernel(kernels::grid_kernels(), [](const GridKernel &kernel) {
    const float scale = 0.00214854861f, inverse = 1.0f / scale;
    const std::int32_t zero = 0;
    const std::vector<float> x(64, 0.273939937f);
    std::vector<std::uint8_t> q(64);
    kernel.quantize(
        {1, 64, x.data(), q.data(), Cell::u8, Rounding::reciprocal, GridPer::array, &inverse, &zero, 0, 255, false});
    assert_int_equal(q[0], 128);
    kernel.quantize(
        {1, 64, x.data(), q.data(), Cell::u8, Rounding::division, GridPer::array, &scale, &zero, 0, 255, false});
    assert_int_equal(q[0], 127);
  });
}

void test_ranges(void **) {
  each_kernel(kernels::grid_kernels(), [](const GridKernel &kernel) {
    Random random(4);
    for (std::size_t n = 0; n <= 150; ++n)
      for (int round = 0; round < 4; ++round) {
        Guarded<float> x(n);
        const float lo = random.one_in(3) ? 0.5f : -3.0f, hi = random.one_in(3) ? -0.5f : 3.0f;
        for (float &v : x.span()) v = random.real(std::min(lo, hi), std::max(lo, hi));
        if (n && round == 1) x[random.in<std::size_t>(0, static_cast<std::int64_t>(n) - 1)] = kNan;
        if (n && round == 2) x[random.in<std::size_t>(0, static_cast<std::int64_t>(n) - 1)] = -kInfinity;
        FloatRange want{0, 0, false};
        for (const float v : x.span()) {
          want.nan |= std::isnan(v);
          want.min = std::fmin(want.min, v), want.max = std::fmax(want.max, v);
        }
        const FloatRange got = kernel.range(x.data(), n);
        if (got.min != want.min || got.max != want.max || got.nan != want.nan)
          fail_msg("%s: range of %zu is [%g, %g] nan %d, expected [%g, %g] nan %d", kernel.name, n,
                   static_cast<double>(got.min), static_cast<double>(got.max), got.nan, static_cast<double>(want.min),
                   static_cast<double>(want.max), want.nan);
      }
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_all_lengths),  cmocka_unit_test(test_rows),
                              cmocka_unit_test(test_streams),      cmocka_unit_test(test_wide_zero_points),
                              cmocka_unit_test(test_rules_differ), cmocka_unit_test(test_ranges)};
  return run_at_both_edges("kernels.grid", tests);
}
