// SPDX-License-Identifier: Apache-2.0
// A logarithm with the same bits on every CPU, which those of C libraries do not promise.
#pragma once

#include <cmath>

namespace qtn::quant {

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

}  // namespace qtn::quant
