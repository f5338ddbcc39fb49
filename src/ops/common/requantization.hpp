// SPDX-License-Identifier: Apache-2.0
// What operators mean in integers: multipliers, bias and output ranges, as the reference definitions and the native
// engine both compute them. Every product and quotient is one float32 operation, in the order written.
//
//   Conv, Gemm, MatMul   y = requantize(sum (x - zx)(w - zw) + bias, conv_multiplier(sx, sw[c], sy))
//   Add, Sub             y = quantize_scaled(float(a - za) * add_multiplier(sa, sy) +-
//                                            float(b - zb) * add_multiplier(sb, sy))
//   Mul                  y = requantize((a - za)(b - zb), conv_multiplier(sa, sb, sy))
//   means                y = requantize(sum (x - zx), mean_multiplier(sx, sy, count))
//
// Sums are exact: one that does not fit int32 is not wrapped but converted to float32 as it is.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/requantize.hpp"
#include "ops/op.hpp"

namespace qtn::ops {

/// The multiplier m onto a grid, or where it is infinite what it stands for, as far as float32 goes: 0 stays 0, and a
/// NaN would be no integer.
inline float finite_multiplier(float m, double exact) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return std::isfinite(m) ? m : static_cast<float>(std::min(exact, kLargest));
}
inline float conv_multiplier(float sx, float sw, float sy) {
  return finite_multiplier((sx * sw) / sy, static_cast<double>(sx) * static_cast<double>(sw) / static_cast<double>(sy));
}
/// The multiplier of Mul. Where grids are reached by the inverse of their scale, as PyTorch's are, so are those of
/// products.
inline float mul_multiplier(const Quantizer &a, const Quantizer &b, const Quantizer &y) {
  if (y.rounding() == Rounding::reciprocal)
    return finite_multiplier((a.scale() * b.scale()) * y.factor(0), a.scales()[0] * b.scales()[0] / y.scales()[0]);
  return conv_multiplier(a.scale(), b.scale(), y.scale());
}
inline float add_multiplier(float sx, float sy) { return sx / sy; }
inline float mean_multiplier(float sx, float sy, std::int64_t count) { return (sx / sy) / static_cast<float>(count); }

/// conv_multiplier of each output channel; of a float output (y is nullptr) sx * sw[c].
std::vector<float> conv_multipliers(const Quantizer &x, const Quantizer &w, const Quantizer *y, std::size_t channels);

/// Whether a bias of the size that integer_bias() takes is larger in units of x.scale * w.scale than int32 holds: such
/// products are not computed in integers.
bool is_bias_beyond_int32(const Tensor &bias, const Quantizer &x, const Quantizer &w, std::size_t channels);

/// The bias of each output channel in units of sx * sw[c]. An int32 tensor quantized in these units is taken as it is;
/// any other is converted by rint(b / (sx * sw[c])) in double, saturated to int32. nullptr: zeros. One element serves
/// all channels.
std::vector<std::int32_t> integer_bias(const Tensor *bias, const Quantizer &x, const Quantizer &w,
                                       std::size_t channels);

/// Zero point and closed range of an output whose real values the clamp (nullptr: none) narrows.
QuantizedRange output_range(const Quantizer &y, const Clamp *clamp);

/// The 256 bytes in order, as the integers of a per-tensor quantizer of uint8 or int8: index and element are raw bytes.
Tensor all_bytes(const QuantizerPtr &q);

/// What run_quantized_op() of an elementwise operator with one output gives for each byte. Its inputs are all_bytes(),
/// what other operators made of them, and constants of one element, whatever their grid and shape.
Tensor run_on_bytes(const OpDef &op, const Call &call, const QuantizerPtr &y, const Clamp *clamp);

/// The entries of such a result on a grid of uint8 or int8, as raw bytes.
std::array<std::uint8_t, 256> table_of(const Tensor &bytes);

/// Whether a tensor holds 8-bit integers under one scale.
bool is_quantized_8bit(const Tensor *t);

/// q - zero_point of an 8-bit tensor under one scale: contiguous, int32.
Tensor centered(const Tensor &q);

/// Quantizes real values already divided by the output scale into a contiguous uint8 or int8 output.
void store_scaled(const Tensor &output, std::span<const float> scaled, const Clamp *clamp);

}  // namespace qtn::ops
