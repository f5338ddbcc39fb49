// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/common/sums.hpp"

namespace qtn::ops {

struct Moments {
  double mean, variance;
};

/// The moments of `count` numbers; NaN for no numbers. Two passes, since the mean of squares less the squared mean
/// cancels.
template <class T>
Moments moments(const T *x, std::int64_t count) {
  const double mean = sum_of(count, [x](std::int64_t i) { return x[i]; }) / static_cast<double>(count);
  const double squares = sum_of(count, [x, mean](std::int64_t i) {
    const double difference = static_cast<double>(x[i]) - mean;
    return difference * difference;
  });
  return {mean, squares / static_cast<double>(count)};
}

}  // namespace qtn::ops
