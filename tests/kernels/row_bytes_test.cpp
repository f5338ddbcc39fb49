// SPDX-License-Identifier: Apache-2.0
// Rows and columns on grids of their own: against the formulas of kernels/rows/own_grid.hpp, written once more.
#include "kernels/rows/rows.hpp"
#include "support.hpp"

namespace qtn::test {
namespace {

using kernels::RowsKernel;

struct Grid {
  float scale, inverse, zero;
};

Grid with_inverse(float scale) {
  if (!(std::fabs(scale) <= std::numeric_limits<float>::max())) return {NAN, 0, 0};
  return scale < 0x1p-126f ? Grid{1, 1, 0} : Grid{scale, 1.0f / scale, 0};
}

Grid grid_of(std::span<const float> x, bool is_signed) {
  float lo = 0, hi = 0;
  bool finite = true;
  for (const float v : x) {
    lo = std::fmin(lo, v);
    hi = std::fmax(hi, v);
    finite = finite && std::isfinite(v);
  }
  if (!finite) return {NAN, 0, 0};
  if (is_signed) return with_inverse(std::fmax(-lo, hi) / 127.0f);
  Grid grid = with_inverse(std::isfinite(hi - lo) ? (hi - lo) / 255.0f : hi / 255.0f - lo / 255.0f);
  grid.zero = std::nearbyint(std::fmin(-lo * grid.inverse, 255.0f));
  return grid;
}

int integer_of(float x, const Grid &grid, bool is_signed) {
  const float steps = std::nearbyint(x * grid.inverse);
  return static_cast<int>(is_signed ? steps : std::fmin(std::fmax(steps + grid.zero, 0.0f), 255.0f));
}

/// Numbers of any size, one-sided at times, and with ties.
void fill(Random &random, std::span<float> x) {
  const float size = random.one_in(3) ? 1.0f : std::exp2(random.real(-140, 126));
  const bool positive = random.one_in(4), ties = random.one_in(4);
  for (float &v : x) {
    v = random.real(positive ? 0.0f : -1.0f, 1.0f);
    if (ties) v = std::nearbyint(v * 255) / 510;
    v *= size;
  }
  if (!x.empty() && random.one_in(20)) std::fill(x.begin(), x.end(), 0.0f);
}

void check_rows(Random &random, const RowsKernel &kernel, std::size_t rows, std::size_t columns, bool is_signed) {
  const std::size_t step = columns + random.in<std::size_t>(0, 9);
  const bool moved = random.one_in(2);
  Guarded<float> x(rows == 0 ? 0 : (rows - 1) * step + columns), less(columns), scale(rows);
  Guarded<std::uint8_t> q(rows * columns);
  Guarded<std::int32_t> zero(rows), sums(rows);
  fill(random, x.span());
  for (float &v : less.span()) v = random.real(-0.5f, 0.5f);
  if (rows > 1 && random.one_in(8)) x[step] = random.one_in(2) ? INFINITY : NAN;
  kernel.row_bytes({x.data(), static_cast<std::ptrdiff_t>(step), rows, columns, moved ? less.data() : nullptr, q.data(),
                    scale.data(), is_signed ? nullptr : zero.data(), is_signed ? sums.data() : nullptr});
  for (std::size_t r = 0; r < rows; ++r) {
    std::vector<float> row(columns);
    for (std::size_t c = 0; c < columns; ++c) row[c] = x[r * step + c] - (moved ? less[c] : 0);
    const Grid grid = grid_of(row, is_signed);
    if (std::isnan(grid.scale)) {
      assert_true(std::isnan(scale[r]));
      continue;
    }
    if (scale[r] != grid.scale || (!is_signed && static_cast<float>(zero[r]) != grid.zero))
      fail_msg("%s: %zu columns: scale %g, not %g", kernel.name, columns, static_cast<double>(scale[r]),
               static_cast<double>(grid.scale));
    int sum = 0;
    for (std::size_t c = 0; c < columns; ++c) {
      const int want = integer_of(row[c], grid, is_signed);
      const int got = is_signed ? static_cast<std::int8_t>(q[r * columns + c]) : q[r * columns + c];
      if (got != want) fail_msg("%s: column %zu of %zu is %d, not %d", kernel.name, c, columns, got, want);
      sum += got;
    }
    if (is_signed) assert_int_equal(sums[r], sum);
  }
  assert_int_equal(q.written_outside(), 0);
  assert_int_equal(scale.written_outside(), 0);
}

void check_columns(Random &random, const RowsKernel &kernel, std::size_t rows, std::size_t columns) {
  const std::size_t step = columns + random.in<std::size_t>(0, 9);
  Guarded<float> x((rows - 1) * step + columns), scale(columns);
  Guarded<std::int8_t> q(rows * columns);
  fill(random, x.span());
  if (random.one_in(8)) x[random.in<std::size_t>(0, static_cast<std::int64_t>(columns) - 1)] = NAN;
  kernel.column_bytes({x.data(), static_cast<std::ptrdiff_t>(step), rows, columns, q.data(), scale.data()});
  for (std::size_t c = 0; c < columns; ++c) {
    std::vector<float> column(rows);
    for (std::size_t r = 0; r < rows; ++r) column[r] = x[r * step + c];
    const Grid grid = grid_of(column, true);
    if (std::isnan(grid.scale) ? !std::isnan(scale[c]) : scale[c] != grid.scale)
      fail_msg("%s: column %zu: scale %g, not %g", kernel.name, c, static_cast<double>(scale[c]),
               static_cast<double>(grid.scale));
    for (std::size_t r = 0; r < rows && !std::isnan(grid.scale); ++r)
      assert_int_equal(q[r * columns + c], integer_of(column[r], grid, true));
  }
  assert_int_equal(q.written_outside(), 0);
  assert_int_equal(scale.written_outside(), 0);
}

void check_score(Random &random, const RowsKernel &kernel, std::size_t rows, std::size_t columns) {
  const std::size_t step = columns + random.in<std::size_t>(0, 20), q_step = columns + random.in<std::size_t>(0, 20);
  Guarded<float> x((rows - 1) * step + columns), y(x.size()), addend(columns), scale(rows);
  Guarded<std::uint8_t> q((rows - 1) * q_step + columns);
  for (float &v : x.span()) v = random.real(-9, 9);
  for (float &v : addend.span()) v = random.one_in(5) ? -INFINITY : random.real(-2, 2);
  addend[0] = 0;
  std::copy(x.span().begin(), x.span().end(), y.data());
  const float factor = random.one_in(3) ? 1 : 0.3f;
  const auto row = static_cast<std::ptrdiff_t>(step);
  const float *added = random.one_in(2) ? addend.data() : nullptr;
  kernel.score({y.data(), rows, columns, row, factor, added, 0});
  kernel.score_bytes(
      {{x.data(), rows, columns, row, factor, added, 0}, q.data(), static_cast<std::ptrdiff_t>(q_step), scale.data()});
  for (std::size_t r = 0; r < rows; ++r) {
    const std::span<const float> shares{&y[r * step], columns};
    const Grid grid = grid_of(shares, false);
    assert_true(grid.zero == 0);
    if (scale[r] != grid.scale)
      fail_msg("%s: %zu columns: scale %g, not %g", kernel.name, columns, static_cast<double>(scale[r]),
               static_cast<double>(grid.scale));
    for (std::size_t c = 0; c < columns; ++c) assert_int_equal(q[r * q_step + c], integer_of(shares[c], grid, false));
  }
  assert_int_equal(scale.written_outside(), 0);
}

void check_codes(Random &random, const RowsKernel &kernel, std::size_t rows, std::size_t columns) {
  Guarded<float> x(rows * columns), scale(rows), y(columns), bias(columns), halves(2 * columns);
  Guarded<std::uint8_t> q(rows * 2 * columns);
  fill(random, x.span());
  if (random.one_in(8)) x[columns - 1] = random.one_in(2) ? -INFINITY : NAN;
  if (random.one_in(8)) std::fill_n(x.data(), columns, random.one_in(2) ? 0.0f : 0x1p-120f);
  kernel.row_codes({x.data(), rows, columns, q.data(), scale.data()});
  for (std::size_t r = 0; r < rows; ++r) {
    const float *row = &x[r * columns];
    float most = 0;
    for (std::size_t c = 0; c < columns; ++c) most = std::isnan(row[c]) ? INFINITY : std::fmax(most, std::fabs(row[c]));
    const bool finite = std::isfinite(most);
    assert_true(finite ? scale[r] == most / 16319.0f : std::isnan(scale[r]));
    const float inverse = 16319.0f / most;
    for (std::size_t c = 0; c < columns; ++c) {
      const int high = q[2 * r * columns + c] - 128, low = q[(2 * r + 1) * columns + c] - 128;
      const float want = finite && most >= 0x1p-100f ? std::nearbyint(row[c] * inverse) : 0.0f;
      if (high * 128 + low != static_cast<int>(want) || low < -64 || low > 63)
        fail_msg("%s: column %zu of %zu is 128 * %d + %d, not %g", kernel.name, c, columns, high, low,
                 static_cast<double>(want));
    }
  }
  for (float &v : halves.span()) v = std::nearbyint(random.real(-3e5f, 3e5f));
  for (float &v : bias.span()) v = random.real(-1, 1);
  kernel.join_codes({halves.data(), halves.data() + columns, columns, 0.37f, bias.data(), y.data()});
  for (std::size_t c = 0; c < columns; ++c) {
    const volatile float sum = halves[c] * 128.0f + halves[columns + c], product = sum * 0.37f;
    const volatile float want = product + bias[c];  // each operation rounds by itself
    assert_true(y[c] == want);
  }
  assert_int_equal(q.written_outside(), 0);
  assert_int_equal(scale.written_outside(), 0);
  assert_int_equal(y.written_outside(), 0);
}

template <class Check>
void each_shape(const Check &check) {
  each_kernel(kernels::rows_kernels(), [&](const RowsKernel &kernel) {
    Random random(8);
    for (std::size_t columns = 1; columns <= 140; ++columns)
      for (int draw = 0; draw < 4; ++draw) check(random, kernel, random.in<std::size_t>(1, 20), columns);
  });
}

void test_rows(void **) {
  for (const bool is_signed : {false, true})
    each_shape([&](Random &random, const RowsKernel &kernel, std::size_t rows, std::size_t columns) {
      check_rows(random, kernel, rows, columns, is_signed);
    });
}

void test_columns(void **) { each_shape(check_columns); }
void test_score(void **) { each_shape(check_score); }
void test_codes(void **) { each_shape(check_codes); }

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_columns), cmocka_unit_test(test_score),
                              cmocka_unit_test(test_codes)};
  return run_at_both_edges("row bytes", tests);
}
