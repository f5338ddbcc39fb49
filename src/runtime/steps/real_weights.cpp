// SPDX-License-Identifier: Apache-2.0
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {

Tensor RealWeights::in_order() const {
  if (taps == 1 || weight.count() == 0) return weight;
  const auto filters = static_cast<std::int64_t>(groups * out), depth = static_cast<std::int64_t>(k);
  const Shape order{filters, taps, depth / taps};
  Tensor ordered(QTN_FLOAT32, order);
  copy_elements(ordered, weight.view(order, Shape{depth, 1, taps}));
  return ordered;
}

}  // namespace qtn::runtime
