// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace qtn::ops {

struct Moments {
  double mean, variance;
};

/// Of `count` numbers; NaN of none. Two passes, since the mean of squares less the squared mean cancels.
template <class T>
Moments moments(const T *x, std::int64_t count) {
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]);
  const double mean = sum / static_cast<double>(count);
  for (std::int64_t i = 0; i < count; ++i) {
    const double difference = static_cast<double>(x[i]) - mean;
    squares += difference * difference;
  }
  return {mean, squares / static_cast<double>(count)};
}

}  // namespace qtn::ops
