// SPDX-License-Identifier: Apache-2.0
// Functions in double, without branches: the compiler makes vectors of loops over them.
#pragma once

#include <array>
#include <limits>

#include "base/elementary.hpp"

namespace qtn::kernels {
namespace {

/// The sum of terms[k] x^k: even and odd powers side by side, so that neither waits for the other.
template <std::size_t count>
[[gnu::always_inline]] inline double polynomial(const std::array<double, count> &terms, double x) {
  static_assert(count % 2 == 0);
  const double square = x * x;
  double even = terms[count - 2], odd = terms[count - 1];
#pragma GCC unroll 8
  for (std::size_t k = count - 2; k > 0; k -= 2) {
    even = even * square + terms[k - 2];
    odd = odd * square + terms[k - 1];
  }
  return even + odd * x;
}

/// e to the x of any x, that beyond `most` taken for it; NaN stays. For results in float32: as exponential() in
/// base/elementary.hpp with fewer terms, what follows is below 1e-11.
[[gnu::always_inline]] inline double brief_exponential(double x, double most) {
  constexpr double kInverseLn2 = 1.4426950408889634, kRound = 0x1.8p52, kLeast = -709, kLn2 = 0.6931471805599453;
  constexpr std::array<double, 10> kInverseFactorials = [] {
    std::array<double, 10> terms{1};
    double factorial = 1;
    for (std::size_t k = 1; k < terms.size(); ++k) terms[k] = 1 / (factorial *= static_cast<double>(k));
    return terms;
  }();
  const double bounded = x > most ? most : x, at = bounded < kLeast ? kLeast : bounded;
  const double shifted = at * kInverseLn2 + kRound, n = shifted - kRound;
  const std::uint64_t exponent = std::bit_cast<std::uint64_t>(shifted) - std::bit_cast<std::uint64_t>(kRound) + 1023;
  return polynomial(kInverseFactorials, at - n * kLn2) * std::bit_cast<double>(exponent << 52);
}

/// A normal distribution's share below x, and exp(-x^2 / 2).
struct Normal {
  double below, density;
};
[[gnu::always_inline]] inline Normal normal(double x) {
  // erfc(z) = exp(-z^2) t p(t) with t = 2 / (2 + z); p is the Chebyshev interpolation of the quotient, whose relative
  // error is below 1e-9 for t from 0.15. Beyond that the exponential is 0 in float32.
  constexpr std::array<double, 12> kTerms = {0.28209810038065,    0.2819867380190048,  0.24838406904920485,
                                             0.1633818672191099,  0.15327534218336958, -0.25760481812468683,
                                             0.5778198882357513,  -1.1354646157478818, 1.1887912384082873,
                                             -0.6889107915549331, 0.21469197917241334, -0.028448997056357096};
  constexpr double kHalfRoot = 0.7071067811865476, kFarthest = 11;
  const double away = (x < 0 ? -x : x) * kHalfRoot, z = away > kFarthest ? kFarthest : away, t = 2 / (2 + z);
  const double density = brief_exponential(-0.5 * x * x, 0), tail = 0.5 * density * t * polynomial(kTerms, t);
  return {x < 0 ? tail : 1 - tail, density};
}

struct Erf {
  static double slope(double x) {
    constexpr double kTwoByRootOfPi = 1.1283791670955126;
    return kTwoByRootOfPi * brief_exponential(-x * x, 0);
  }
};

struct Exp {
  static double slope(double y) { return y; }
};

struct Gelu {
  static double slope(double x) {
    constexpr double kInverseRootOf2Pi = 0.3989422804014327;
    const Normal n = normal(x);
    return n.below + x * n.density * kInverseRootOf2Pi;
  }
};

struct Sigmoid {
  static double value(double x) { return 1 / (1 + brief_exponential(-x, 700)); }
  static double slope(double y) { return y * (1 - y); }
};

/// x times the sigmoid of twice a cubic polynomial.
struct GeluByTanh {
  static constexpr double kSlope = 1.5957691216057308, kCubic = 0.044715;

  static double slope(double x) {
    const double s = Sigmoid::value(kSlope * (x + kCubic * x * x * x));
    return s + x * s * (1 - s) * kSlope * (1 + 3 * kCubic * x * x);
  }
};

struct Tanh {
  static double slope(double y) { return 1 - y * y; }
};

/// x tanh(log(1 + e^x)) = x n / (n + 2), n = e^x (e^x + 2)
struct Mish {
  static double value(double x) {
    const double e = brief_exponential(x, 100), n = e * (e + 2);
    return x * (n / (n + 2));
  }
  static double slope(double x) {
    const double e = brief_exponential(x, 100), n = e * (e + 2), t = n / (n + 2);
    return t + x * (1 - t * t) * (e / (1 + e));
  }
};

struct HardSwish {
  static float value(float x) {
    const float gate = x * (1.0f / 6.0f) + 0.5f, above = gate < 0 ? 0 : gate;
    return x * (above > 1 ? 1 : above);
  }
  static float slope(float x) { return x < 3 ? x <= -3 ? 0 : x * (1.0f / 3.0f) + 0.5f : 1; }
};

/// The inverse tangent of a number or, beyond 1, a right angle without that of its inverse.
struct Atan {
  static double value(double x) {
    // The Chebyshev interpolation of atan(t) / t in t^2; its relative error is below 1e-10.
    constexpr std::array<double, 12> kTerms = {0.9999999999293037,    -0.3333333129088999,  0.19999901102171555,
                                               -0.14283813255743194,  0.11091922963683302,  -0.08974171958363882,
                                               0.07228278345377252,   -0.05395668057137172, 0.033826218952786875,
                                               -0.015828322749149415, 0.00473248419342192,  -0.0006633954571104787};
    constexpr double kRightAngle = 1.5707963267948966;
    const double away = x < 0 ? -x : x, t = away > 1 ? 1 / away : away;
    const double near = t * polynomial(kTerms, t * t), angle = away > 1 ? kRightAngle - near : near;
    return x < 0 ? -angle : angle;
  }
  static double slope(double x) { return 1 / (1 + x * x); }
};

/// log((1 + s) / (1 - s)) for |s| at most 1/3; what follows the last term is below 1e-11.
[[gnu::always_inline]] inline double logarithm_of_ratio(double s) {
  constexpr std::array<double, 10> kOdd = [] {
    std::array<double, 10> terms{};
    for (std::size_t k = 0; k < terms.size(); ++k) terms[k] = 2.0 / (2.0 * static_cast<double>(k) + 1);
    return terms;
  }();
  return s * polynomial(kOdd, s * s);
}

struct Log {
  static double value(double x) {
    constexpr double kLn2 = 0.6931471805599453, kInfinity = std::numeric_limits<double>::infinity();
    constexpr std::uint64_t kHalfRoot = std::bit_cast<std::uint64_t>(0.7071067811865476), kBias = 1024;
    constexpr double kWhole = 0x1p52;
    // x = m 2^n with m from the root of 1/2 to that of 2.
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(x), biased = (bits - kHalfRoot + (kBias << 52)) >> 52;
    const double m = std::bit_cast<double>(bits - ((biased - kBias) << 52));
    const double n = std::bit_cast<double>(biased | std::bit_cast<std::uint64_t>(kWhole)) - (kWhole + kBias);
    const double y = n * kLn2 + logarithm_of_ratio((m - 1) / (m + 1)), of_positive = x < kInfinity ? y : x;
    return x > 0 ? of_positive : x == 0 ? -kInfinity : std::numeric_limits<double>::quiet_NaN();
  }
  static double slope(double x) { return 1 / x; }
};

/// log(1 + e^x)
struct Softplus {
  static double value(double x) {
    const double e = brief_exponential(x < 0 ? x : -x, 0);
    return (x < 0 ? 0 : x) + logarithm_of_ratio(e / (2 + e));
  }
  static double slope(double x) { return Sigmoid::value(x); }
};

/// The sine of an angle up to kFarthest and so many right angles.
struct Turned {
  static constexpr double kFarthest = 0x1p20;

  static double sine(double angle, std::uint64_t right_angles) {
    constexpr double kByRightAngle = 0.6366197723675814, kRound = 0x1.8p52;
    // A right angle in three parts: products of the first two with a number of them are exact.
    constexpr double kHigh = 0x1.921fb544p0, kMiddle = 0x1.0b4611a6p-34, kLow = 0x1.3198a2e037073p-69;
    constexpr std::array<double, 6> kOdd = {1, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800};
    constexpr std::array<double, 6> kEven = {1, -1.0 / 2, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800};
    const double shifted = angle * kByRightAngle + kRound, n = shifted - kRound;
    const double rest = ((angle - n * kHigh) - n * kMiddle) - n * kLow, square = rest * rest;
    const double odd = rest * polynomial(kOdd, square), even = polynomial(kEven, square);
    const std::uint64_t turns = std::bit_cast<std::uint64_t>(shifted) + right_angles;
    const double y = (turns & 1) != 0 ? even : odd;
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(y) ^ ((turns & 2) << 62));
  }
};

struct Sin : Turned {
  static double value(double x) { return sine(x, 0); }
  static double slope(double x) { return sine(x, 1); }
  static double far_value(double x) { return std::sin(x); }
  static double far_slope(double x) { return std::cos(x); }
};

struct Cos : Turned {
  static double value(double x) { return sine(x, 1); }
  static double slope(double x) { return sine(x, 2); }
  static double far_value(double x) { return std::cos(x); }
  static double far_slope(double x) { return -std::sin(x); }
};

struct Relu {
  static float value(float x) { return x <= 0 ? 0 : x; }
};

}  // namespace
}  // namespace qtn::kernels
