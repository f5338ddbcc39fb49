// SPDX-License-Identifier: Apache-2.0
#include "core/codes.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace qtn {
namespace {

/// An IEEE-like format: sign, exponent, mantissa. float8_e4m3fn spends its highest exponent on numbers too, and has one
/// NaN and no infinity.
struct Format {
  int exponent_bits, mantissa_bits;
  bool has_infinity;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  unsigned exponent_mask() const { return (1u << exponent_bits) - 1; }
  unsigned sign() const { return 1u << (exponent_bits + mantissa_bits); }
  unsigned infinity() const { return exponent_mask() << mantissa_bits; }
  unsigned nan() const { return has_infinity ? infinity() | 1u << (mantissa_bits - 1) : sign() - 1; }
  unsigned largest() const { return has_infinity ? infinity() - 1 : sign() - 2; }
};

Format format_of(qdtype dtype) {
  switch (dtype) {
    case QTN_FLOAT16:
      return {5, 10, true};
    case QTN_BFLOAT16:
      return {8, 7, true};
    case QTN_FLOAT8E4M3FN:
      return {4, 3, false};
    case QTN_FLOAT8E5M2:
      return {5, 2, true};
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
  if (dtype == QTN_BFLOAT16) return std::bit_cast<float>(std::uint32_t{code} << 16);
  const Format f = format_of(dtype);
  const unsigned magnitude = code & (f.sign() - 1);
  float value;
  if (magnitude > f.largest())
    value = f.has_infinity && magnitude == f.infinity() ? std::numeric_limits<float>::infinity()
                                                        : std::numeric_limits<float>::quiet_NaN();
  else
    value = decode_magnitude(f, magnitude);
  return (code & f.sign()) != 0 ? -value : value;
}

std::uint16_t encode_float(qdtype dtype, float value, bool saturate) {
  const Format f = format_of(dtype);
  const unsigned sign = std::signbit(value) ? f.sign() : 0;
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | f.nan());
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
    const bool clamps = saturate && is_float8(dtype);
    code = clamps ? f.largest() : f.has_infinity ? f.infinity() : f.nan();
  }
  return static_cast<std::uint16_t>(sign | code);
}

float largest_finite(qdtype dtype) { return decode_magnitude(format_of(dtype), format_of(dtype).largest()); }

namespace {

struct Lane {
  std::int64_t byte;
  unsigned shift, mask;
};

Lane lane_of(const PackedSpan &span, std::int64_t i) {
  const unsigned bits = dtype_bits(span.dtype), per_byte = 8 / bits;
  const std::int64_t at = span.lane + i;
  const auto within = static_cast<unsigned>(at & (per_byte - 1));
  return {(at - within) / per_byte, within * bits, (1u << bits) - 1};
}

}  // namespace

std::int8_t PackedSpan::load(std::int64_t i) const {
  const Lane at = lane_of(*this, i);
  const unsigned value = bytes[at.byte] >> at.shift & at.mask;
  const bool negative = plain_dtype(dtype) == QTN_INT8 && value > at.mask >> 1;
  return static_cast<std::int8_t>(negative ? static_cast<int>(value) - static_cast<int>(at.mask) - 1
                                           : static_cast<int>(value));
}

void PackedSpan::store(std::int64_t i, std::int64_t value) const {
  const Lane at = lane_of(*this, i);
  const unsigned kept = bytes[at.byte] & ~(at.mask << at.shift);
  bytes[at.byte] = static_cast<std::uint8_t>(kept | (static_cast<unsigned>(value) & at.mask) << at.shift);
}

}  // namespace qtn
