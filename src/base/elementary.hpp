// SPDX-License-Identifier: Apache-2.0
// Functions with the same bits on every CPU, which those of C libraries do not promise. Errors are a few units in the
// last place unless said otherwise.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace qtn {

/// Natural, of a positive finite number; the error is a few units in the last place of the larger of its two terms.
inline double logarithm(double x) {
  constexpr double kLn2 = 0.6931471805599453, kHalfRoot = 0.7071067811865476;
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < kHalfRoot) {
    m *= 2;
    --exponent;
  }
  // log m = 2 atanh s; |s| < 0.172, so what follows s^23 is below 1e-19.
  const double s = (m - 1) / (m + 1), square = s * s;
  double sum = 0;
  for (int k = 23; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return 2 * s * sum + exponent * kLn2;
}

/// e to the x, x at most 709; 0 below -708.8. Without branches: loops of it become vectors under -fno-trapping-math. In
/// the files of kernels it must not become a function that others link to.
[[gnu::always_inline]] inline double exponential(double x) {
  constexpr double kInverseLn2 = 1.4426950408889634, kRound = 0x1.8p52, kLeast = -709;
  constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;  // the first has 21 zeros at its end
  constexpr std::array<double, 14> kInverseFactorials = [] {
    std::array<double, 14> terms{1};
    double factorial = 1;
    for (std::size_t k = 1; k < terms.size(); ++k) terms[k] = 1 / (factorial *= static_cast<double>(k));
    return terms;
  }();
  const double at = x < kLeast ? kLeast : x;
  // The sum's last bits are the nearest integer n; |rest| < 0.347, so what follows rest^13 is below 1e-17.
  const double shifted = at * kInverseLn2 + kRound, n = shifted - kRound;
  const double rest = (at - n * kLn2High) - n * kLn2Low;
  double sum = kInverseFactorials.back();
#pragma GCC unroll 13
  for (std::size_t k = 13; k-- > 0;) sum = sum * rest + kInverseFactorials[k];
  const std::uint64_t exponent = std::bit_cast<std::uint64_t>(shifted) - std::bit_cast<std::uint64_t>(kRound) + 1023;
  return sum * std::bit_cast<double>(exponent << 52);  // which is 0 for n = -1023
}

/// cos(pi x) for x in [0, 1]; the error is below 1e-15.
inline double cosine_of_pi(double x) {
  constexpr double kPi = 3.141592653589793;
  // A sine of at most a quarter turn: what follows angle^21 is below 1e-17.
  const double angle = (0.5 - x) * kPi, square = angle * angle;
  double sum = 1;
  for (int k = 21; k >= 3; k -= 2) sum = 1 - sum * square / (k * (k - 1));
  return sum * angle;
}

/// base to the n, n not negative.
inline double power(double base, std::int64_t n) {
  double result = 1;
  for (; n > 0; n /= 2, base *= base)
    if (n % 2 != 0) result *= base;
  return result;
}

}  // namespace qtn
