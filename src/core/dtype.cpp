// SPDX-License-Identifier: Apache-2.0
#include "core/dtype.hpp"

#include <limits>

#include "base/error.hpp"
#include "base/size.hpp"

namespace qtn {

const char *dtype_name(qdtype dtype) {
  switch (dtype) {
    case QTN_FLOAT32:
      return "float32";
    case QTN_UINT8:
      return "uint8";
    case QTN_INT8:
      return "int8";
    case QTN_UINT16:
      return "uint16";
    case QTN_INT16:
      return "int16";
    case QTN_INT32:
      return "int32";
    case QTN_INT64:
      return "int64";
    case QTN_UINT32:
      return "uint32";
    case QTN_UINT64:
      return "uint64";
    case QTN_BOOL:
      return "bool";
    case QTN_FLOAT16:
      return "float16";
    case QTN_FLOAT64:
      return "float64";
    case QTN_BFLOAT16:
      return "bfloat16";
    case QTN_FLOAT8E4M3FN:
      return "float8_e4m3fn";
    case QTN_FLOAT8E5M2:
      return "float8_e5m2";
    case QTN_FLOAT8E4M3FNUZ:
      return "float8_e4m3fnuz";
    case QTN_FLOAT8E5M2FNUZ:
      return "float8_e5m2fnuz";
    case QTN_FLOAT8E8M0:
      return "float8_e8m0";
    case QTN_FLOAT4E2M1:
      return "float4_e2m1";
    case QTN_UINT4:
      return "uint4";
    case QTN_INT4:
      return "int4";
    case QTN_UINT2:
      return "uint2";
    case QTN_INT2:
      return "int2";
    case QTN_DTYPE_FORCE32:
      break;
  }
  return "?";
}

void fail_dtype(qdtype dtype) {
  if (dtype_name(dtype)[0] == '?') fail(QTN_EINVAL, "dtype: ", static_cast<int>(dtype), " is not an element type");
  fail(QTN_EUNSUPPORTED, "dtype: ", dtype_name(dtype), " is not supported here");
}

unsigned dtype_bits(qdtype dtype) {
  switch (dtype) {
    case QTN_UINT2:
    case QTN_INT2:
      return 2;
    case QTN_UINT4:
    case QTN_INT4:
    case QTN_FLOAT4E2M1:
      return 4;
    case QTN_FLOAT8E4M3FN:
    case QTN_FLOAT8E5M2:
    case QTN_FLOAT8E4M3FNUZ:
    case QTN_FLOAT8E5M2FNUZ:
    case QTN_FLOAT8E8M0:
      return 8;
    case QTN_FLOAT16:
    case QTN_BFLOAT16:
      return 16;
    default:
      return dispatch(dtype, [](auto zero) { return static_cast<unsigned>(8 * sizeof(zero)); });
  }
}

std::size_t dtype_size(qdtype dtype) {
  if (is_packed(dtype)) fail_dtype(dtype);
  return dtype_bits(dtype) / 8;
}

std::size_t storage_nbytes(qdtype dtype, std::int64_t count) {
  const std::size_t bits = dtype_bits(dtype), n = static_cast<std::size_t>(count);
  if (bits < 8) return n / (8 / bits) + (n % (8 / bits) != 0);
  std::size_t bytes;
  if (__builtin_mul_overflow(n, bits / 8, &bytes) || bytes > Size::kLimit)
    fail(QTN_ESHAPE, "shape: ", count, " elements of ", dtype_name(dtype), " are too large");
  return bytes;
}

bool is_packed_integer(qdtype dtype) {
  return dtype == QTN_UINT4 || dtype == QTN_INT4 || dtype == QTN_UINT2 || dtype == QTN_INT2;
}

bool is_packed(qdtype dtype) { return is_packed_integer(dtype) || dtype == QTN_FLOAT4E2M1; }

bool is_tiny_float(qdtype dtype) {
  return dtype == QTN_FLOAT8E4M3FN || dtype == QTN_FLOAT8E5M2 || dtype == QTN_FLOAT8E4M3FNUZ ||
         dtype == QTN_FLOAT8E5M2FNUZ || dtype == QTN_FLOAT4E2M1;
}

bool is_narrow_float(qdtype dtype) {
  return dtype == QTN_FLOAT16 || dtype == QTN_BFLOAT16 || dtype == QTN_FLOAT8E8M0 || is_tiny_float(dtype);
}

bool is_floating(qdtype dtype) { return dtype == QTN_FLOAT32 || dtype == QTN_FLOAT64 || is_narrow_float(dtype); }

qdtype plain_dtype(qdtype dtype) {
  if (is_narrow_float(dtype)) return QTN_FLOAT32;
  if (!is_packed_integer(dtype)) return dtype;
  return dtype == QTN_INT4 || dtype == QTN_INT2 ? QTN_INT8 : QTN_UINT8;
}

bool is_quantizable(qdtype dtype) {
  return dtype == QTN_UINT8 || dtype == QTN_INT8 || dtype == QTN_UINT16 || dtype == QTN_INT16 || dtype == QTN_INT32 ||
         is_packed(dtype) || is_tiny_float(dtype);
}

IntegerRange integer_range(qdtype dtype) {
  if (is_floating(dtype) || dtype == QTN_BOOL)
    fail(QTN_EDTYPE, "dtype: ", dtype_name(dtype), " is not an integer type");
  if (is_packed(dtype)) {
    const std::int64_t values = std::int64_t{1} << dtype_bits(dtype);
    if (plain_dtype(dtype) == QTN_UINT8) return {0, values - 1};
    return {-values / 2, values / 2 - 1};
  }
  return dispatch(dtype, [](auto zero) {
    using T = decltype(zero);
    constexpr bool wide = std::is_same_v<T, std::uint64_t>;
    return IntegerRange{
        static_cast<std::int64_t>(std::numeric_limits<T>::lowest()),
        wide ? std::numeric_limits<std::int64_t>::max() : static_cast<std::int64_t>(std::numeric_limits<T>::max())};
  });
}

}  // namespace qtn
