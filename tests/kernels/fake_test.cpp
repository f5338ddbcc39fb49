// SPDX-License-Identifier: Apache-2.0
#include "kernels/fake/fake.hpp"

#include <algorithm>

#include "support.hpp"

namespace qtn::test {
namespace {

using kernels::ClipSums;
using kernels::FakeGrids;
using kernels::FakeKernel;
using kernels::FakeSums;
using kernels::PlanesArgs;
using kernels::PlanesMoments;
using kernels::PlanesSums;

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

struct Rule {
  const char *name;
  Rounding rounding;
  bool inverses;
};
constexpr Rule kRules[] = {{"reciprocal", Rounding::reciprocal, false},
                           {"inverse", Rounding::reciprocal, true},
                           {"division", Rounding::division, false},
                           {"half_away", Rounding::half_away, false}};

/// A product, quotient or sum of floats rounded to float is that of doubles rounded twice.
float product(float a, float b) { return static_cast<float>(static_cast<double>(a) * static_cast<double>(b)); }
float quotient(float a, float b) { return static_cast<float>(static_cast<double>(a) / static_cast<double>(b)); }
float sum(float a, float b) { return static_cast<float>(static_cast<double>(a) + static_cast<double>(b)); }

/// The formulas of the field, one value at a time.
struct Grid {
  Rule rule;
  float scale;
  std::int64_t zero, lo, hi;

  float scaled(float x) const {
    if (rule.rounding != Rounding::reciprocal) return quotient(x, scale);
    return product(x, rule.inverses ? scale : quotient(1, scale));
  }
  std::int64_t unclamped(float x) const {
    const double v = std::clamp(static_cast<double>(scaled(x)), -1e12, 1e12);
    return (rule.rounding == Rounding::half_away ? std::llround(v) : std::llrint(v)) + zero;
  }
  float steps(float x) const {
    return std::isnan(scaled(x)) ? 0.0f : static_cast<float>(std::clamp(unclamped(x), lo, hi) - zero);
  }
  float fake(float x) const { return rule.inverses ? quotient(steps(x), scale) : product(steps(x), scale); }
  bool inside(float x) const {
    if (std::isnan(scaled(x)) || unclamped(x) < lo || unclamped(x) > hi) return false;
    return !rule.inverses || quotient(static_cast<float>(hi), std::abs(x)) >= scale;
  }
};

/// The order of sums that fake.hpp promises: terms of a row, or of a column.
double ordered(std::span<const float> terms, std::size_t lanes) {
  std::vector<double> totals(lanes);
  const std::size_t whole = terms.size() / lanes * lanes, block = 16 * lanes;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    for (std::size_t begin = 0; begin < whole; begin += block) {
      float part = 0;
      for (std::size_t i = begin + lane; i < std::min(begin + block, whole); i += lanes) part = sum(part, terms[i]);
      totals[lane] += static_cast<double>(part);
    }
    if (whole + lane < terms.size()) totals[lane] += static_cast<double>(terms[whole + lane]);
  }
  double total = 0;
  for (const double t : totals) total += t;
  return total;
}

float any_float(Random &random, float step) {
  switch (random.in(0, 15)) {
    case 0:
      return random.one_in(3) ? kNan : random.one_in(2) ? kInfinity : -kInfinity;
    case 1:
      return random.one_in(2) ? 3.4e38f : -3.4e38f;
    case 2:
      return random.one_in(2) ? 1e-42f : random.one_in(2) ? -0.0f : 0.0f;
    case 3:
    case 4:
      return (static_cast<float>(random.in(-300, 300)) + 0.5f) * step;  // ties
    case 5:
      return static_cast<float>(random.in(-140000, 140000)) * 0.5f * step;
    case 6:
      return random.real(-3e9f, 3e9f) * step;
    default:
      return random.real(-200, 200) * step;
  }
}

float any_scale(Random &random) {
  switch (random.in(0, 9)) {
    case 0:
      return 1.0f;
    case 1:
      return 0.5f;
    case 2:
      return 1e-42f;  // its inverse is infinite
    case 3:
      return 3e38f;  // its inverse is denormal
    default:
      return std::exp2(random.real(-12.0f, 4.0f));
  }
}

/// A grid of 2 to 8, or 16 bits, sometimes narrowed; with a zero point inside.
Grid any_grid(Random &random, const Rule &rule) {
  const int bits = random.one_in(8) ? 16 : random.in(2, 8);
  Grid g{rule, any_scale(random), 0, random.one_in(2) ? 0 : -(std::int64_t{1} << (bits - 1)), 0};
  g.hi = g.lo + (std::int64_t{1} << bits) - 1;
  if (random.one_in(3)) g.lo = random.in(g.lo, g.hi - 1);
  g.zero = random.one_in(3) ? g.lo : random.one_in(3) ? g.hi : random.in(g.lo, g.hi);
  return g;
}

/// A matrix and the grids of its rows or columns: one range, and scales and zero points of their own.
struct Case {
  Case(Random &random, const Rule &rule, bool columnwise, std::size_t row_count, std::size_t column_count)
      : rows(row_count), columns(column_count), by_column(columnwise), x(rows * columns), dy(rows * columns) {
    const Grid range = any_grid(random, rule);
    for (std::size_t i = 0; i < (by_column ? columns : rows); ++i) {
      Grid g = range;
      g.scale = any_scale(random);
      g.zero = random.in(g.lo, g.hi);
      grids.push_back(g);
      scale.push_back(g.scale);
      zero.push_back(static_cast<std::int32_t>(g.zero));
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float step = at(i).scale;
      x[i] = any_float(random, rule.inverses ? quotient(1, step) : step);
      dy[i] = random.one_in(9) ? 0.0f : random.real(-3, 3);
    }
    std::snprintf(what, sizeof what, "%s%s [%d, %d] rows=%zu columns=%zu", rule.name, by_column ? " by column" : "",
                  static_cast<int>(range.lo), static_cast<int>(range.hi), rows, columns);
  }

  const Grid &at(std::size_t i) const { return grids[by_column ? i % columns : i / columns]; }
  FakeGrids args(const Guarded<float> &scales, const Guarded<std::int32_t> &zeros) const {
    const Grid &g = grids[0];
    return {scales.data(),   zeros.data(),   static_cast<std::int32_t>(g.lo), static_cast<std::int32_t>(g.hi),
            g.rule.rounding, g.rule.inverses};
  }

  void check(const FakeKernel &kernel) const {
    if (grids.empty()) return;
    const Guarded<float> scales(scale);
    const Guarded<std::int32_t> zeros(zero);
    Guarded<float> y(x.size());
    kernel.quantize({rows, columns, by_column, args(scales, zeros), x.data(), y.data()});
    std::vector<float> want(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) want[i] = at(i).fake(x[i]);
    for (std::size_t i = 0; i < x.size(); ++i)
      if (std::isnan(want[i]) && std::isnan(y[i])) want[i] = y[i];  // 0 / 0
    expect_result<float>(y, want, kernel.name, what);
    check_backward(kernel, args(scales, zeros));
  }

  void check_backward(const FakeKernel &kernel, const FakeGrids &given) const {
    std::vector<float> want(x.size());
    std::vector<std::vector<float>> steps(grids.size()), outside(grids.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool inside = at(i).inside(x[i]);
      const auto g = static_cast<std::size_t>(&at(i) - grids.data());
      want[i] = inside ? dy[i] : 0.0f;
      steps[g].push_back(product(dy[i], inside ? sum(at(i).steps(x[i]), -at(i).scaled(x[i])) : at(i).steps(x[i])));
      outside[g].push_back(inside ? 0.0f : dy[i]);
    }
    std::vector<double> sums;
    for (std::size_t g = 0; g < grids.size(); ++g)
      for (const auto &terms : {steps[g], outside[g]}) sums.push_back(ordered(terms, by_column ? 1 : 16));

    Guarded<float> dx(x.size()), in_place(x.size());
    std::copy(dy.span().begin(), dy.span().end(), in_place.data());
    Guarded<FakeSums> got(grids.size());
    kernel.backward({rows, columns, by_column, given, x.data(), dy.data(), dx.data(), got.data()});
    expect_result<float>(dx, want, kernel.name, what);
    static_assert(sizeof(FakeSums) == 2 * sizeof(double));
    expect_same<double>({&got.data()->steps, sums.size()}, sums, kernel.name, what);
    kernel.backward({rows, columns, by_column, given, x.data(), in_place.data(), in_place.data(), nullptr});
    expect_result<float>(in_place, want, kernel.name, what);
  }

  std::size_t rows, columns;
  bool by_column;
  std::vector<Grid> grids;
  std::vector<float> scale;
  std::vector<std::int32_t> zero;
  Guarded<float> x, dy;
  char what[128];
};

/// Every rule at every length about a few vectors, and about the blocks of sums.
void test_rows(void **) {
  each_kernel(kernels::fake_kernels(), [](const FakeKernel &kernel) {
    Random random(1);
    for (const Rule &rule : kRules) {
      for (std::size_t n = 0; n <= 70; ++n) Case(random, rule, false, random.in<std::size_t>(1, 3), n).check(kernel);
      for (const std::size_t n : {255, 256, 257, 271, 272, 273, 511, 512, 530, 4103})
        Case(random, rule, false, 2, n).check(kernel);
    }
  });
}

void test_columns(void **) {
  each_kernel(kernels::fake_kernels(), [](const FakeKernel &kernel) {
    Random random(2);
    for (const Rule &rule : kRules)
      for (std::size_t columns = 0; columns <= 35; ++columns)
        for (const std::size_t rows : {1, 2, 15, 16, 17, 33}) Case(random, rule, true, rows, columns).check(kernel);
  });
}

/// The largest float that NVIDIA's toolkit would name as amax passes, the next one does not.
void test_amax(void **) {
  each_kernel(kernels::fake_kernels(), [](const FakeKernel &kernel) {
    Random random(3);
    for (int i = 0; i < 2000; ++i) {
      const float amax = std::exp2(random.real(-20, 20)), hi = random.one_in(2) ? 127.0f : 7.0f;
      const float inverse = hi / amax;
      float beyond = amax;
      while (hi / beyond >= inverse) beyond = std::nextafter(beyond, kInfinity);
      const std::int32_t zero = 0;
      const float x[] = {amax, -amax, beyond, -beyond, 0.0f, -0.0f, amax / 2}, dy[] = {1, 2, 3, 4, 5, 6, 7};
      const auto bound = static_cast<std::int32_t>(hi);
      float dx[7];
      kernel.backward({1, 7, false, {&inverse, &zero, -bound, bound, Rounding::reciprocal, true}, x, dy, dx, nullptr});
      const float want[] = {1, 2, 0, 0, 5, 6, 7};
      expect_same<float>(dx, want, kernel.name, "amax");
    }
  });
}

void test_clip(void **) {
  each_kernel(kernels::fake_kernels(), [](const FakeKernel &kernel) {
    Random random(4);
    for (std::size_t n = 0; n <= 600; n += n < 70 ? 1 : 53) {
      const float lo = -2.5f, hi = random.one_in(2) ? 3.0f : kInfinity;
      Guarded<float> x(n), dy(n), dx(n);
      std::vector<float> want(n), below(n), above(n);
      for (std::size_t i = 0; i < n; ++i) {
        x[i] = random.one_in(6) ? lo : random.one_in(6) ? hi : random.one_in(20) ? kNan : random.real(-6, 6);
        dy[i] = random.real(-1, 1);
        want[i] = x[i] > lo && x[i] < hi ? dy[i] : 0.0f;
        below[i] = x[i] <= lo ? dy[i] : 0.0f;
        above[i] = x[i] >= hi ? dy[i] : 0.0f;
      }
      const ClipSums sums = kernel.clip_backward({n, lo, hi, x.data(), dy.data(), dx.data()});
      expect_result<float>(dx, want, kernel.name, "clip");
      const double expected[] = {ordered(below, 16), ordered(above, 16)}, got[] = {sums.below, sums.above};
      expect_same<double>(got, expected, kernel.name, "sums of clip");
    }
  });
}

/// Planes with or without a clamp and a grid.
struct PlanesCase {
  PlanesCase(Random &random, const Rule *rule, std::size_t channel_count, std::size_t plane)
      : channels(channel_count), size(plane), x(channels * size), dz(channels * size) {
    lo = random.one_in(3) ? -kInfinity : random.one_in(2) ? 0.0f : -1.5f;
    hi = random.one_in(2) ? kInfinity : 6.0f;
    if (rule) {
      grid = any_grid(random, *rule);
      grid.scale = rule->inverses ? 20.0f : 0.05f;
      gridded = true;
    }
    std::snprintf(what, sizeof what, "planes %s [%g, %g] channels=%zu size=%zu", rule ? rule->name : "without grid",
                  static_cast<double>(lo), static_cast<double>(hi), channels, size);
    for (auto *values : {&gain, &shift, &a, &b, &c})
      for (std::size_t i = 0; i < channels; ++i) values->push_back(random.one_in(7) ? -0.0f : random.real(-2, 2));
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = random.one_in(40) ? any_float(random, 1) : random.one_in(9) ? 0.0f : random.real(-6, 6);
      dz[i] = random.real(-3, 3);
    }
  }

  float before(std::size_t i) const { return sum(product(x[i], gain[i / size]), shift[i / size]); }
  float clamped(std::size_t i) const { return before(i) < lo ? lo : before(i) > hi ? hi : before(i); }
  bool passes(std::size_t i) const { return before(i) > lo && before(i) < hi && (!gridded || grid.inside(before(i))); }

  void check(const FakeKernel &kernel) const {
    const Guarded<float> gains(gain), shifts(shift), as(a), bs(b), cs(c);
    const auto zero = static_cast<std::int32_t>(grid.zero);
    const FakeGrids one{&grid.scale,
                        &zero,
                        static_cast<std::int32_t>(grid.lo),
                        static_cast<std::int32_t>(grid.hi),
                        grid.rule.rounding,
                        grid.rule.inverses};
    const PlanesArgs args{channels, size, x.data(), gains.data(), shifts.data(), lo, hi, gridded ? &one : nullptr};
    check_forward(kernel, args);

    std::vector<double> sums;
    std::vector<float> want(x.size());
    for (std::size_t channel = 0; channel < channels; ++channel) {
      std::vector<float> dv(size), dv_x(size);
      for (std::size_t j = 0; j < size; ++j) {
        const std::size_t i = channel * size + j;
        dv[j] = passes(i) ? dz[i] : 0.0f;
        dv_x[j] = passes(i) ? product(dz[i], x[i]) : 0.0f;
        want[i] = sum(sum(product(dv[j], a[channel]), product(x[i], b[channel])), c[channel]);
      }
      sums.push_back(ordered(dv, 16));
      sums.push_back(ordered(dv_x, 16));
    }
    Guarded<PlanesSums> got(channels);
    kernel.normalize_sums(args, dz.data(), got.data());
    expect_same<double>({&got.data()->dv, sums.size()}, sums, kernel.name, what);
    Guarded<float> dx(x.size());
    std::copy(dz.span().begin(), dz.span().end(), dx.data());
    kernel.normalize_backward({args, dx.data(), as.data(), bs.data(), cs.data(), dx.data()});
    for (std::size_t i = 0; i < x.size(); ++i)
      if (std::isnan(want[i]) && std::isnan(dx[i])) want[i] = dx[i];
    expect_result<float>(dx, want, kernel.name, what);
  }

  void check_forward(const FakeKernel &kernel, const PlanesArgs &args) const {
    Guarded<float> z(x.size());
    const bool finite = kernel.normalize(args, z.data());
    std::vector<float> want(x.size());
    bool all = true;
    for (std::size_t i = 0; i < x.size(); ++i) {
      want[i] = gridded ? grid.fake(clamped(i)) : clamped(i);
      if (std::isnan(want[i]) && std::isnan(z[i])) want[i] = z[i];
      all = all && (!gridded || std::isfinite(before(i)));
    }
    expect_result<float>(z, want, kernel.name, what);
    if (finite != all) fail_msg("%s: %s: %s", kernel.name, what, all ? "is finite" : "is not finite");
  }

  std::size_t channels, size;
  Guarded<float> x, dz;
  std::vector<float> gain, shift, a, b, c;
  float lo, hi;
  Grid grid{kRules[0], 1, 0, 0, 1};
  bool gridded = false;
  char what[128];
};

void test_planes(void **) {
  each_kernel(kernels::fake_kernels(), [](const FakeKernel &kernel) {
    Random random(5);
    for (std::size_t size = 1; size <= 600; size += size < 70 ? 1 : 53) {
      const std::size_t channels = random.in<std::size_t>(1, 4);
      PlanesCase(random, nullptr, channels, size).check(kernel);
      for (const Rule &rule : kRules) PlanesCase(random, &rule, channels, size).check(kernel);
    }
  });
}

void test_moments(void **) {
  each_kernel(kernels::fake_kernels(), [](const FakeKernel &kernel) {
    Random random(6);
    for (std::size_t size = 0; size <= 600; size += size < 70 ? 1 : 53) {
      const std::size_t channels = random.in<std::size_t>(1, 4);
      Guarded<float> x(channels * size), shift(channels);
      Guarded<PlanesMoments> got(channels);
      for (float &v : x.span()) v = random.one_in(5) ? -0.0f : random.real(-6, 6);
      for (float &v : shift.span()) v = random.one_in(3) ? 0.0f : random.real(-2, 2);
      kernel.moments(channels, size, x.data(), shift.data(), got.data());
      for (std::size_t c = 0; c < channels; ++c) {
        std::vector<float> terms, squares;
        float ends[] = {kInfinity, -kInfinity};
        for (const float v : x.span().subspan(c * size, size)) {
          terms.push_back(sum(v, -shift[c]));
          squares.push_back(product(terms.back(), terms.back()));
          ends[0] = std::min(ends[0], v) + 0.0f;
          ends[1] = std::max(ends[1], v) + 0.0f;
        }
        const double sums[] = {ordered(terms, 16), ordered(squares, 16)};
        expect_same<double>({&got[c].sum, 2}, sums, kernel.name, "moments");
        expect_same<float>({&got[c].min, 2}, ends, kernel.name, "ends");
      }
    }
  });
}

/// NaN is passed over wherever it stands; infinities are ends.
void test_ends_of_what_is_not_finite(void **) {
  each_kernel(kernels::fake_kernels(), [](const FakeKernel &kernel) {
    for (std::size_t n = 1; n <= 100; ++n)
      for (const float bad : {kNan, kInfinity, -kInfinity}) {
        const float shift = 0;
        std::vector<float> x(n, 1.0f);
        x[n * 7 / 11] = bad;
        PlanesMoments m;
        kernel.moments(1, n, x.data(), &shift, &m);
        const float want[] = {bad < 1 ? bad : n > 1 ? 1.0f : kInfinity, bad > 1 ? bad : n > 1 ? 1.0f : -kInfinity};
        if (n > 1 || std::isnan(bad)) expect_same<float>({&m.min, 2}, want, kernel.name, "ends");
      }
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_rows),
                              cmocka_unit_test(test_columns),
                              cmocka_unit_test(test_amax),
                              cmocka_unit_test(test_clip),
                              cmocka_unit_test(test_planes),
                              cmocka_unit_test(test_moments),
                              cmocka_unit_test(test_ends_of_what_is_not_finite)};
  return run_at_both_edges("kernels.fake", tests);
}
