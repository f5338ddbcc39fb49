// SPDX-License-Identifier: Apache-2.0
// Long sums in double: several side by side, which do not wait for one another, in an order that follows from the count
// alone.
#pragma once

#include <cstdint>

namespace qtn::ops {

/// f(0) + f(1) + ... + f(count - 1)
template <class F>
double sum_of(std::int64_t count, F &&f) {
  constexpr std::int64_t kLanes = 8;
  double lanes[kLanes] = {}, sum = 0;
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += static_cast<double>(f(i + lane));
  for (; i < count; ++i) sum += static_cast<double>(f(i));
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace qtn::ops
