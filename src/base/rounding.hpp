// SPDX-License-Identifier: Apache-2.0
// The one definition of how a real number comes onto a grid of integers and back. Tensors use it as it stands; every
// kernel, on every instruction set, gives exactly these bits.
//
//   reciprocal   q = clamp(rint(x * inverse) + zero)          PyTorch, FBGEMM, QNNPACK: inverse = 1 / scale in float32
//   division     q = clamp(rint(x / scale) + zero)            ONNX QuantizeLinear
//   half_away    q = clamp(round(x / scale) + zero)           TensorFlow Lite: ties away from zero
//
// The product or quotient is one float32 operation. What follows it is exact: rint (ties to even) or round, the zero
// point and the clamp, for int32 too.
#pragma once

#include <cmath>
#include <cstdint>

namespace qtn {

enum class Rounding { reciprocal, division, half_away };

/// `factor` is the inverse of the scale under `reciprocal`, else the scale. NaN counts as 0.
inline std::int32_t to_grid(float x, Rounding rounding, float factor, std::int32_t zero, std::int32_t lo,
                            std::int32_t hi) {
  const float scaled = rounding == Rounding::reciprocal ? x * factor : x / factor;
  if (scaled != scaled) return zero < lo ? lo : zero > hi ? hi : zero;
  // In double the sum and the bounds of any integer type are exact.
  const double wide = static_cast<double>(scaled);
  const double q = (rounding == Rounding::half_away ? std::round(wide) : std::nearbyint(wide)) + zero;
  return q < lo ? lo : q > hi ? hi : static_cast<std::int32_t>(q);
}

/// `factor` is the scale, or its inverse where the grid is given by that (`divide`).
inline float from_grid(std::int32_t q, bool divide, float factor, std::int32_t zero) {
  const auto steps = static_cast<float>(std::int64_t{q} - zero);
  return divide ? steps / factor : steps * factor;
}

}  // namespace qtn
