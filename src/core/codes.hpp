// SPDX-License-Identifier: Apache-2.0
// Element types that are only stored: narrow floats as bit patterns, packed integers as lanes of bytes.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"

namespace qtn {

/// The value of a float16, bfloat16, float8_e4m3fn or float8_e5m2 bit pattern. Exact.
float decode_float(qdtype dtype, std::uint16_t code);

/// The nearest pattern, ties to even. What is too large becomes the largest finite value where `saturate` holds, else
/// infinity (NaN for float8_e4m3fn, which has no infinity). NaN stays NaN. float16 and bfloat16 never saturate.
std::uint16_t encode_float(qdtype dtype, float value, bool saturate);

/// The largest finite value of a narrow float.
float largest_finite(qdtype dtype);

/// Elements of a packed type, `lane` elements after the first of the byte at `bytes`.
struct PackedSpan {
  std::uint8_t *bytes;
  std::int64_t lane;
  qdtype dtype;

  std::int8_t load(std::int64_t i) const;
  void store(std::int64_t i, std::int64_t value) const;  ///< keeps the low bits
};

}  // namespace qtn
