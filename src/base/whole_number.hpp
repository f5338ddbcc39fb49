// SPDX-License-Identifier: Apache-2.0
// Whole numbers near others, without calls of the C library, so that loops become vectors. Zeros keep their sign.
#pragma once

#include <cmath>
#include <limits>

namespace qtn {

/// The nearest one, of two the even one.
template <class T>
T nearest_whole(T x) {
  constexpr T kWhole = 1 / std::numeric_limits<T>::epsilon();  // from here on all are whole
  const T away = std::abs(x), near = (away + kWhole) - kWhole;
  return std::copysign(away < kWhole ? near : away, x);
}

/// The largest up to x.
template <class T>
T whole_below(T x) {
  const T near = nearest_whole(x);
  return std::copysign(near > x ? near - 1 : near, x);
}

/// The smallest from x on.
template <class T>
T whole_above(T x) {
  return -whole_below(-x);
}

}  // namespace qtn
