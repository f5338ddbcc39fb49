// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

namespace qtn::ops {

/// One number as another type. ONNX leaves a float outside the integer's range undefined; C++ would too, so it
/// saturates. NaN becomes 0.
template <class To, class From>
To convert(From v) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>) {
    constexpr double below = static_cast<double>(std::numeric_limits<To>::lowest());
    constexpr double above = static_cast<double>(std::numeric_limits<To>::max());
    if (std::isnan(v)) return 0;
    if (static_cast<double>(v) <= below) return std::numeric_limits<To>::lowest();
    if (static_cast<double>(v) >= above) return std::numeric_limits<To>::max();
  }
  return static_cast<To>(v);
}

}  // namespace qtn::ops
