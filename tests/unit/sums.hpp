// SPDX-License-Identifier: Apache-2.0
// Comparing what was added in different orders.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/tensor.hpp"

namespace qtn::test {

/// Whether two float tensors are equal except for the order in which each engine adds products: they differ by a part of
/// the largest element at most. A sum on the border between two integers of a grid may go either way: `step` is the
/// distance between these.
inline bool equal_but_for_sums(const Tensor &got, const Tensor &want, double step = 0, double part = 1e-6) {
  if (got.shape() != want.shape()) return false;
  const std::vector<float> a = float_values(got, "got"), b = float_values(want, "want");
  double largest = 0, apart = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
    apart = std::max(apart, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return apart <= step + part * largest;
}

}  // namespace qtn::test
