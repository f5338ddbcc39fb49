// SPDX-License-Identifier: Apache-2.0
// Element types that are only stored: narrow floats as bit patterns, packed integers as lanes of bytes.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"

namespace qtn {

/// The value of the bit pattern of a narrow float. Exact.
float decode_float(qdtype dtype, std::uint16_t code);

/// The nearest pattern, ties to even. What is too large becomes the largest finite value where `saturate` holds, else
/// infinity, or NaN in types without infinities. NaN stays NaN. float16 and bfloat16 never saturate, float4 always does
/// and has -0 for NaN; float8_e8m0 is encode_exponent() of what lies below, upwards.
std::uint16_t encode_float(qdtype dtype, float value, bool saturate);

/// The float8_e8m0 of a magnitude: its exponent, 0 for 0, NaN for what is not finite. Beyond 2^127 it stays there where
/// `saturate` holds, else it becomes NaN.
enum class PowerRounding { up, down, nearest };
std::uint8_t encode_exponent(float value, bool saturate, PowerRounding rounding);

/// The largest finite value of a narrow float.
float largest_finite(qdtype dtype);

/// Elements of a packed type, `lane` elements after the first of the byte at `bytes`.
struct PackedSpan {
  std::uint8_t *bytes;
  std::int64_t lane;
  qdtype dtype;

  std::int8_t load(std::int64_t i) const;
  void store(std::int64_t i, std::int64_t value) const;  ///< keeps the low bits

  /// The same for `count` elements from number `first` on.
  void load_run(std::int64_t first, std::int64_t count, std::int8_t *to) const;
  void store_run(std::int64_t first, std::int64_t count, const std::int8_t *from) const;
};

}  // namespace qtn
