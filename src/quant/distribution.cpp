// SPDX-License-Identifier: Apache-2.0
#include "quant/distribution.hpp"

namespace qtn::quant {

void Distribution::add(const Tensor &x) {
  const Tensor flat = x.in_any_order();
  if (flat.count() == 0) return;
  zeros += quant::add(bins, {flat.as<const float>(), static_cast<std::size_t>(flat.count())}, kBins);
}

}  // namespace qtn::quant
