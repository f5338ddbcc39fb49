// SPDX-License-Identifier: Apache-2.0
#include "core/codes.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "core/half.hpp"

namespace qtn {
namespace {

/// What the patterns behind the finite values are.
enum class Top {
  ieee,     ///< the highest exponent is for infinity and NaN
  one_nan,  ///< all are finite but the last, which is NaN
  no_zero,  ///< all are finite, and -0 is the only NaN
  finite    ///< all are finite, and there is no NaN
};

/// A format of sign, exponent and mantissa.
struct Format {
  int exponent_bits, mantissa_bits;
  Top top;

  int bias() const { return (1 << (exponent_bits - 1)) - (top == Top::no_zero ? 0 : 1); }
  unsigned exponent_mask() const { return (1u << exponent_bits) - 1; }
  unsigned sign() const { return 1u << (exponent_bits + mantissa_bits); }
  bool has_infinity() const { return top == Top::ieee; }
  unsigned infinity() const { return exponent_mask() << mantissa_bits; }
  unsigned largest() const { return top == Top::ieee ? infinity() - 1 : sign() - (top == Top::one_nan ? 2 : 1); }

  unsigned nan(unsigned sign_of_value) const {
    if (top == Top::no_zero || top == Top::finite) return sign();
    return sign_of_value | (top == Top::ieee ? infinity() | 1u << (mantissa_bits - 1) : sign() - 1);
  }
};

Format format_of(qdtype dtype) {
  switch (dtype) {
    case QTN_FLOAT8E4M3FN:
      return {4, 3, Top::one_nan};
    case QTN_FLOAT8E5M2:
      return {5, 2, Top::ieee};
    case QTN_FLOAT8E4M3FNUZ:
      return {4, 3, Top::no_zero};
    case QTN_FLOAT8E5M2FNUZ:
      return {5, 2, Top::no_zero};
    case QTN_FLOAT4E2M1:
      return {2, 1, Top::finite};
    default:
      fail_dtype(dtype);
  }
}

float decode_magnitude(const Format &f, unsigned code) {
  const int exponent = static_cast<int>(code >> f.mantissa_bits);
  const auto mantissa = static_cast<float>(code & ((1u << f.mantissa_bits) - 1));
  const int unit = (exponent == 0 ? 1 : exponent) - f.bias() - f.mantissa_bits;
  return std::ldexp(exponent == 0 ? mantissa : mantissa + static_cast<float>(1 << f.mantissa_bits), unit);
}

}  // namespace

float decode_float(qdtype dtype, std::uint16_t code) {
  if (dtype == QTN_FLOAT16) return decode_half(code);
  if (dtype == QTN_BFLOAT16) return decode_bfloat16(code);
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  if (dtype == QTN_FLOAT8E8M0) return code == 255 ? kNaN : std::ldexp(1.0f, code - 127);
  const Format f = format_of(dtype);
  const unsigned magnitude = code & (f.sign() - 1);
  if (f.top == Top::no_zero && code == f.sign()) return kNaN;
  float value;
  if (magnitude > f.largest())
    value = f.has_infinity() && magnitude == f.infinity() ? std::numeric_limits<float>::infinity() : kNaN;
  else
    value = decode_magnitude(f, magnitude);
  return (code & f.sign()) != 0 ? -value : value;
}

std::uint16_t encode_float(qdtype dtype, float value, bool saturate) {
  if (dtype == QTN_FLOAT16) return encode_half(value);
  if (dtype == QTN_BFLOAT16) return encode_bfloat16(value);
  if (dtype == QTN_FLOAT8E8M0) return encode_exponent(value, saturate, PowerRounding::up);
  const Format f = format_of(dtype);
  const unsigned sign = std::signbit(value) ? f.sign() : 0;
  if (std::isnan(value)) return static_cast<std::uint16_t>(f.nan(sign));
  const float magnitude = std::fabs(value);
  unsigned code;
  if (std::isinf(magnitude)) {
    code = f.largest() + 1;
  } else {
    // In units of the last place the value is an integer after rounding; a carry moves into the exponent by itself.
    const int exponent = magnitude == 0 ? 1 - f.bias() : std::max(std::ilogb(magnitude), 1 - f.bias());
    const double units = std::nearbyint(std::ldexp(static_cast<double>(magnitude), f.mantissa_bits - exponent));
    const auto low = static_cast<std::int64_t>(exponent + f.bias() - 1) << f.mantissa_bits;
    code = static_cast<unsigned>(std::min<std::int64_t>(low + static_cast<std::int64_t>(units), f.largest() + 1));
  }
  if (code > f.largest()) {
    const bool clamps = f.top == Top::finite || (saturate && is_tiny_float(dtype));
    if (!clamps && !f.has_infinity()) return static_cast<std::uint16_t>(f.nan(sign));
    code = clamps ? f.largest() : f.infinity();
  }
  if (f.top == Top::no_zero && code == 0) return 0;
  return static_cast<std::uint16_t>(sign | code);
}

std::uint8_t encode_exponent(float value, bool saturate, PowerRounding rounding) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t exponent = bits >> 23 & 0xFF, mantissa = bits & 0x7FFFFF, half = 0x400000;
  if (exponent == 0xFF) return 0xFF;
  // A tie goes up, but from below the first normal number.
  const bool above = rounding == PowerRounding::up        ? mantissa > 0
                     : rounding == PowerRounding::nearest ? mantissa > half || (mantissa == half && exponent > 0)
                                                          : false;
  return static_cast<std::uint8_t>(exponent + (above && !(saturate && exponent == 0xFE) ? 1 : 0));
}

float largest_finite(qdtype dtype) { return decode_magnitude(format_of(dtype), format_of(dtype).largest()); }

}  // namespace qtn
