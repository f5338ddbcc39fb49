// SPDX-License-Identifier: Apache-2.0
#include "core/dtype.hpp"

#include <limits>

#include "base/error.hpp"

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

std::size_t dtype_size(qdtype dtype) {
  if (dtype == QTN_FLOAT16 || dtype == QTN_BFLOAT16) return 2;
  return dispatch(dtype, [](auto zero) { return sizeof(zero); });
}

bool is_floating(qdtype dtype) {
  return dtype == QTN_FLOAT32 || dtype == QTN_FLOAT64 || dtype == QTN_FLOAT16 || dtype == QTN_BFLOAT16;
}

bool is_quantizable(qdtype dtype) {
  return dtype == QTN_UINT8 || dtype == QTN_INT8 || dtype == QTN_UINT16 || dtype == QTN_INT16 || dtype == QTN_INT32;
}

IntegerRange integer_range(qdtype dtype) {
  if (!is_quantizable(dtype) && dtype != QTN_INT64)
    fail(QTN_EDTYPE, "dtype: ", dtype_name(dtype), " is not an integer type");
  return dispatch(dtype, [](auto zero) {
    using T = decltype(zero);
    return IntegerRange{static_cast<std::int64_t>(std::numeric_limits<T>::lowest()),
                        static_cast<std::int64_t>(std::numeric_limits<T>::max())};
  });
}

}  // namespace qtn
