// SPDX-License-Identifier: Apache-2.0
#include "quant/mask.hpp"

#include <algorithm>
#include <cmath>

namespace qtn::quant {

bool is_mask(const Tensor &constant, const Observer &observed) {
  constexpr float kLeast = 1e4f;
  constexpr double kTimes = 64;
  const std::vector<float> values = float_values(constant, "constant");
  if (values.empty() || observed.empty()) return false;
  const float nearest = std::fabs(std::ranges::min(values, {}, [](float v) { return std::fabs(v); }));
  if (!(nearest >= kLeast)) return false;
  const QuantizerPtr grid = observed.quantizer();
  const IntegerRange &range = grid->range();
  return nearest > kTimes * std::max(std::fabs(grid->dequantize(range.lo)), std::fabs(grid->dequantize(range.hi)));
}

}  // namespace qtn::quant
