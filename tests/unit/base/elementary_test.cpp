// SPDX-License-Identifier: Apache-2.0
// Functions of our own beside those of the C library.
#include "base/elementary.hpp"

#include <limits>

#include "check.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

/// Fails the test where |got - want| is more than `units` of the last place of `scale`.
void expect_near(const char *what, double x, double got, double want, double units, double scale) {
  if (!(std::fabs(got - want) <= units * kEpsilon * std::fabs(scale)))
    fail_test(what, " ", x, ": ", got, ", not ", want, ", apart by ", got - want);
}

void exponentials(void **) {
  for (double x = -706.9; x <= 709; x += 0.0137) expect_near("exp", x, exponential(x), std::exp(x), 2, std::exp(x));
  for (double x = -1; x <= 1; x += 0.000137) expect_near("exp", x, exponential(x), std::exp(x), 2, std::exp(x));
  assert_true(exponential(0) == 1 && exponential(-0.0) == 1);
  assert_true(exponential(-709) == 0 && exponential(-1000) == 0 && exponential(-1e300) == 0 &&
              exponential(-kInfinity) == 0);
  assert_true(std::isnan(exponential(NAN)) && std::isnan(exponential(-NAN)));
}

void logarithms(void **) {
  for (double x = 1e-300; x < 1e300; x *= 1.37)
    expect_near("log", x, logarithm(x), std::log(x), 4, std::max(1.0, std::fabs(std::log(x))));
  assert_true(logarithm(1) == 0);
}

void cosines(void **) {
  for (int i = 0; i <= 1000; ++i) {
    const double x = i / 1000.0;
    expect_near("cos", x, cosine_of_pi(x), std::cos(3.141592653589793 * x), 4, 1);
  }
  assert_true(cosine_of_pi(0.5) == 0);
}

void powers(void **) {
  for (const double base : {0.9, 0.999, 0.1, 1.0, 1.5})
    for (const int n : {1, 2, 3, 10, 63, 64, 1000}) {
      const double want = std::pow(base, n);
      expect_near("pow", base, power(base, n), want, n + 1, want);
    }
  assert_true(power(0, 0) == 1 && power(0, 5) == 0 && power(0.5, 10) == 1.0 / 1024);
  assert_true(power(0.9, std::numeric_limits<std::int64_t>::max()) == 0);
}

}  // namespace
}  // namespace qtn

int main() {
  using namespace qtn;
  const CMUnitTest tests[] = {
      cmocka_unit_test(exponentials),
      cmocka_unit_test(logarithms),
      cmocka_unit_test(cosines),
      cmocka_unit_test(powers),
  };
  return cmocka_run_group_tests_name("elementary", tests, nullptr, nullptr);
}
