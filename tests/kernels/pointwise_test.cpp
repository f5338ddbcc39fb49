// SPDX-License-Identifier: Apache-2.0
#include "kernels/pointwise/pointwise.hpp"

#include "support.hpp"

namespace qtn::test {
namespace {

using kernels::Arithmetic;
using kernels::PointwiseKernel;
using kernels::PointwiseOperand;

float of(Arithmetic f, float a, float b) {
  switch (f) {
    case Arithmetic::add:
      return a + b;
    case Arithmetic::sub:
      return a - b;
    case Arithmetic::mul:
      return a * b;
    case Arithmetic::div:
      return a / b;
    default:
      if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<float>::quiet_NaN();
      return (f == Arithmetic::max ? a > b : a < b) ? a : b;
  }
}

/// All sizes and both signs; a few infinite, denormal, 0 or NaN.
float any(Random &random) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kEnds[] = {
      kInfinity, -kInfinity, 3e38f, 1e-42f, 0.0f, -0.0f, std::numeric_limits<float>::quiet_NaN()};
  if (random.one_in(12)) return kEnds[random.in<std::size_t>(0, std::size(kEnds) - 1)];
  return (random.one_in(2) ? 1.0f : -1.0f) * std::exp2(random.real(-30, 30));
}

/// How an operand repeats, and the elements it has for that.
struct Form {
  bool along_row, over_rows;
  std::size_t elements(std::size_t rows, std::size_t columns) const {
    return (over_rows ? 1 : rows) * (along_row ? 1 : columns);
  }
  PointwiseOperand operand(const float *at, std::size_t columns) const {
    return {at, over_rows ? 0 : static_cast<std::ptrdiff_t>(along_row ? 1 : columns), along_row};
  }
};

constexpr Form kForms[] = {{false, false}, {false, true}, {true, false}, {true, true}};

void check(Random &random, const PointwiseKernel &kernel, Arithmetic f, const Form &form_a, const Form &form_b,
           std::size_t rows, std::size_t columns) {
  Guarded<float> a(form_a.elements(rows, columns)), b(form_b.elements(rows, columns)), y(rows * columns);
  for (const Guarded<float> *g : {&a, &b})
    for (float &v : g->span()) v = any(random);
  const PointwiseOperand of_a = form_a.operand(a.data(), columns), of_b = form_b.operand(b.data(), columns);
  if ((f == Arithmetic::max || f == Arithmetic::min) && a.span().size() == y.span().size()) {  // in place of a
    std::ranges::copy(a.span(), y.span().begin());
    kernel.run({f, rows, columns, form_a.operand(y.data(), columns), of_b, y.data()});
  } else {
    kernel.run({f, rows, columns, of_a, of_b, y.data()});
  }
  const auto element = [](const PointwiseOperand &o, std::size_t r, std::size_t c) {
    return o.at[static_cast<std::ptrdiff_t>(r) * o.row + static_cast<std::ptrdiff_t>(o.repeats ? 0 : c)];
  };
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) {
      const float want = of(f, element(of_a, r, c), element(of_b, r, c)), got = y[r * columns + c];
      if (std::isnan(want) ? !std::isnan(got) : std::memcmp(&got, &want, sizeof want) != 0)
        fail_msg("%s: element %zu of %zu in row %zu is %g, not %g", kernel.name, c, columns, r,
                 static_cast<double>(got), static_cast<double>(want));
    }
  if (const std::ptrdiff_t at = y.written_outside(); at != 0) fail_msg("%s: wrote byte %td", kernel.name, at);
}

void test_pairs(void **) {
  each_kernel(kernels::pointwise_kernels(), [](const PointwiseKernel &kernel) {
    Random random(1);
    for (const Arithmetic f :
         {Arithmetic::add, Arithmetic::sub, Arithmetic::mul, Arithmetic::div, Arithmetic::max, Arithmetic::min})
      for (const Form &a : kForms)
        for (const Form &b : kForms)
          for (std::size_t columns = 0; columns <= 200; columns += random.in<std::size_t>(1, 7))
            if (!(a.along_row && b.along_row) || columns == 1)
              check(random, kernel, f, a, b, random.in<std::size_t>(1, 4), columns);
  });
}

void test_affine(void **) {
  each_kernel(kernels::pointwise_kernels(), [](const PointwiseKernel &kernel) {
    Random random(2);
    for (std::size_t columns = 0; columns <= 200; ++columns) {
      const std::size_t rows = random.in<std::size_t>(1, 4), pitch = columns + random.in<std::size_t>(0, 3);
      const bool in_place = random.one_in(2);
      const std::size_t x_pitch = in_place ? pitch : columns + random.in<std::size_t>(0, 3);
      Guarded<float> y((rows - 1) * pitch + columns), apart((rows - 1) * x_pitch + columns), factor(columns),
          addend(columns);
      const Guarded<float> &x = in_place ? y : apart;
      for (const Guarded<float> *g : {&y, &apart, &factor, &addend})
        for (float &v : g->span()) v = any(random);
      const float *added = random.one_in(2) ? addend.data() : nullptr;
      const bool bounded = random.one_in(2);
      const float hi = bounded ? 6.0f : std::numeric_limits<float>::infinity(), lo = bounded ? 0.0f : -hi;
      const std::vector<float> before(y.span().begin(), y.span().end()), from(x.span().begin(), x.span().end());
      kernel.affine({rows, columns, factor.data(), added, lo, hi, x.data(), static_cast<std::ptrdiff_t>(x_pitch),
                     y.data(), static_cast<std::ptrdiff_t>(pitch)});
      for (std::size_t i = 0; i < before.size(); ++i) {
        const std::size_t c = pitch == 0 ? 0 : i % pitch;
        float want = before[i];
        if (c < columns) {
          want = from[i / pitch * x_pitch + c] * factor[c];
          if (added) want += added[c];
          want = want <= lo ? lo : want > hi ? hi : want;
        }
        if (std::isnan(want) ? !std::isnan(y[i]) : std::memcmp(&y[i], &want, sizeof want) != 0)
          fail_msg("%s: element %zu of rows of %zu is %g, not %g", kernel.name, i, columns, static_cast<double>(y[i]),
                   static_cast<double>(want));
      }
      if (const std::ptrdiff_t at = y.written_outside(); at != 0) fail_msg("%s: wrote byte %td", kernel.name, at);
    }
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_pairs), cmocka_unit_test(test_affine)};
  return run_at_both_edges("pointwise", tests);
}
