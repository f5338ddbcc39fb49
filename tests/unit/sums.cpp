// SPDX-License-Identifier: Apache-2.0
#include "sums.hpp"

#include <algorithm>
#include <cmath>

namespace qtn::test {

bool equal_but_for_sums(const Tensor &got, const Tensor &want, double step, double part) {
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
