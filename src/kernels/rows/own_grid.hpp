// SPDX-License-Identifier: Apache-2.0
// The grid that numbers get from their own range. It is that of ONNX's DynamicQuantizeLinear, except that floats are
// multiplied by the inverse of the scale, which is faster than a division: q = clamp(rint(x * inverse) + zero).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace qtn::kernels {
namespace {

struct OwnGrid {
  float scale, inverse;  ///< NaN and 0 where a number has no place: results are NaN
  std::int32_t zero;
};

constexpr float kSmallestOwnScale = 0x1p-126f;  ///< below it the scale is 1, and has an inverse

inline OwnGrid with_inverse(float scale) {
  if (!std::isfinite(scale)) return {std::numeric_limits<float>::quiet_NaN(), 0, 0};
  if (scale < kSmallestOwnScale) return {1, 1, 0};
  return {scale, 1 / scale, 0};
}

/// The grid of int8 around 0 for numbers from -peak to peak.
inline OwnGrid own_grid(float peak) { return with_inverse(peak / 127); }

/// The grid of uint8 for numbers from lo to hi, between which 0 lies.
inline OwnGrid own_grid(float lo, float hi) {
  const float range = hi - lo;  // may overflow
  OwnGrid grid = with_inverse(std::isfinite(range) ? range / 255 : hi / 255 - lo / 255);
  const float below = -lo * grid.inverse;
  grid.zero = static_cast<std::int32_t>(std::nearbyint(below > 255 ? 255.0f : below));
  return grid;
}

}  // namespace
}  // namespace qtn::kernels
