// SPDX-License-Identifier: Apache-2.0
// Element types: names, sizes, integer ranges.
#pragma once

#include <cstddef>
#include <cstdint>

#include "qtensor/types.h"

namespace qtn {

/// "float32", "uint8" ...; "?" for a number that is no element type.
const char *dtype_name(qdtype dtype);

/// Bytes of one element. Throws QTN_EUNSUPPORTED for types that this version does not store (packed 4- and 2-bit,
/// float8).
std::size_t dtype_size(qdtype dtype);

bool is_floating(qdtype dtype);

/// Types a quantized tensor may have: uint8, int8, uint16, int16, int32.
bool is_quantizable(qdtype dtype);

/// Bounds of an integer type. Throws QTN_EDTYPE for other types.
struct IntegerRange {
  std::int64_t lo, hi;
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
    case QTN_BOOL:
      return f(bool{});
    default:
      fail_dtype(dtype);
  }
}

}  // namespace qtn
