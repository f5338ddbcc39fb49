// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>

namespace qtn::ops {

/// The weight that cubic interpolation with coefficient `a` gives a pixel so far away.
inline double cubic_weight(double distance, double a) {
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// Those of the four pixels around a place that is `rest` behind the second.
inline std::array<double, 4> cubic_weights(double rest, double a) {
  return {cubic_weight(rest + 1, a), cubic_weight(rest, a), cubic_weight(1 - rest, a), cubic_weight(2 - rest, a)};
}

}  // namespace qtn::ops
