// SPDX-License-Identifier: Apache-2.0
// Element types: names, sizes, integer ranges.
#pragma once

#include <cstddef>
#include <cstdint>

#include "qtensor/types.h"

namespace qtn {

/// "float32", "uint8" ...; "?" for a number that is no element type.
const char *dtype_name(qdtype dtype);

/// Bits of one element: 2 to 64.
unsigned dtype_bits(qdtype dtype);

/// Bytes of one element. Throws QTN_EUNSUPPORTED for packed types, whose elements share bytes.
std::size_t dtype_size(qdtype dtype);

/// Bytes of `count` elements side by side, the last byte of a packed type perhaps part empty.
std::size_t storage_nbytes(qdtype dtype, std::int64_t count);

/// int4, uint4, int2, uint2, float4: as in ONNX, the first element is in the lowest bits of a byte.
bool is_packed(qdtype dtype);
bool is_packed_integer(qdtype dtype);

/// float16, bfloat16, float8, float4: stored, copied and converted; arithmetic is in float32.
bool is_narrow_float(qdtype dtype);

/// Those of 8 and 4 bits whose values are grids of quantized tensors; float8_e8m0, which has no 0, is not among them.
bool is_tiny_float(qdtype dtype);

bool is_floating(qdtype dtype);

/// The type that computes for one that is only stored: float32 for narrow floats, int8 or uint8 for packed integers;
/// itself for all others.
qdtype plain_dtype(qdtype dtype);

/// Types a quantized tensor may have: integers of 2 to 32 bits, and tiny floats.
bool is_quantizable(qdtype dtype);

/// Bounds of an integer type, of uint64 as far as int64 reaches. Throws QTN_EDTYPE for other types.
struct IntegerRange {
  std::int64_t lo, hi;
  friend bool operator==(const IntegerRange &, const IntegerRange &) = default;
};
IntegerRange integer_range(qdtype dtype);

/// Calls f(T{}) with the C++ type of an element type: dispatch(dtype, [&](auto zero) { using T = decltype(zero); ...
/// }).
template <class F>
decltype(auto) dispatch(qdtype dtype, F &&f);

[[noreturn]] void fail_dtype(qdtype dtype);

template <class F>
decltype(auto) dispatch(qdtype dtype, F &&f) {
  switch (dtype) {
    case QTN_FLOAT32:
      return f(float{});
    case QTN_FLOAT64:
      return f(double{});
    case QTN_UINT8:
      return f(std::uint8_t{});
    case QTN_INT8:
      return f(std::int8_t{});
    case QTN_UINT16:
      return f(std::uint16_t{});
    case QTN_INT16:
      return f(std::int16_t{});
    case QTN_INT32:
      return f(std::int32_t{});
    case QTN_INT64:
      return f(std::int64_t{});
    case QTN_UINT32:
      return f(std::uint32_t{});
    case QTN_UINT64:
      return f(std::uint64_t{});
    case QTN_BOOL:
      return f(bool{});
    default:
      fail_dtype(dtype);
  }
}

}  // namespace qtn
