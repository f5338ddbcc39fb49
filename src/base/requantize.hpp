// SPDX-License-Identifier: Apache-2.0
// The one definition of requantization. Every kernel, on every instruction set, gives exactly these bits.
//
//   q = zero + rint(clamp(v, lo - zero, hi - zero))       rint: to nearest, ties to even
//
// The clamp comes before the rounding, where it cannot overflow an int32; its bounds are integers, so the result is the
// same as clamping afterwards. Products and sums are rounded one by one: no fused multiply-add (-ffp-contract=off).
#pragma once

#include <cstdint>

namespace qtn {

/// Where a result goes: its zero point and the closed range it saturates to (an activation such as Relu narrows it).
struct QuantizedRange {
  std::int32_t zero = 0;
  std::int32_t lo = 0;
  std::int32_t hi = 255;
};

/// Rounds |v| < 2^22 to nearest-even by the float32 grid itself, so that plain code vectorizes.
inline float round_even(float v) {
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23
  return (v + kMagic) - kMagic;
}

/// A real value already divided by the output scale. NaN becomes the zero point.
inline std::uint8_t quantize_scaled(float v, const QuantizedRange &r) {
  const float lo = static_cast<float>(r.lo - r.zero), hi = static_cast<float>(r.hi - r.zero);
  v = v == v ? v : 0.0f;
  v = v < lo ? lo : v;
  v = v > hi ? hi : v;
  return static_cast<std::uint8_t>(static_cast<std::int32_t>(round_even(v)) + r.zero);
}

/// An int32 accumulator, `multiplier` = scale_x * scale_w / scale_y in float32, in that order.
inline std::uint8_t requantize(std::int32_t acc, float multiplier, const QuantizedRange &r) {
  return quantize_scaled(static_cast<float>(acc) * multiplier, r);
}

}  // namespace qtn
