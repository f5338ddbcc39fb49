// SPDX-License-Identifier: Apache-2.0
// What a tensor held, for people to look at.
#pragma once

#include <algorithm>

#include "core/tensor.hpp"
#include "quant/observe/dyadic_bins.hpp"

namespace qtn::quant {

struct Distribution {
  static constexpr std::int64_t kBins = 128;

  DyadicBins bins;
  std::uint64_t zeros = 0;

  /// float32 and finite.
  void add(const Tensor &x);

  float min() const { return zeros > 0 ? std::min(bins.min, 0.0f) : bins.min; }
  float max() const { return zeros > 0 ? std::max(bins.max, 0.0f) : bins.max; }
};

}  // namespace qtn::quant
