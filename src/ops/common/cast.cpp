// SPDX-License-Identifier: Apache-2.0
#include "ops/common/cast.hpp"

#include <cstring>

#include "ops/common/convert.hpp"
#include "ops/common/elementwise.hpp"

namespace qtn::ops {
namespace {

template <class From, class To>
Tensor mapped(const Tensor &x, qdtype dtype) {
  const Tensor y(dtype, x.shape());
  map_elements<From, To>(x, y, convert<To, From>);
  return y;
}

/// The same bytes as another type of as many.
Tensor seen_as(const Tensor &x, qdtype dtype) {
  const Tensor y(dtype, x.shape());
  if (x.count() > 0) std::memcpy(y.data(), x.data(), x.nbytes());
  return y;
}

/// Converts between types that compute. Wide unsigned integers go through int64, which has their bits, but from and to floats.
Tensor converted(const Tensor &x, qdtype dtype) {
  const bool from_single = x.dtype() == QTN_FLOAT32, to_single = dtype == QTN_FLOAT32;
  if (x.dtype() == dtype) return x;
  if (x.dtype() == QTN_UINT32) return converted(mapped<std::uint32_t, std::int64_t>(x, QTN_INT64), dtype);
  if (x.dtype() == QTN_UINT64 && is_floating(dtype))
    return to_single ? mapped<std::uint64_t, float>(x, dtype) : mapped<std::uint64_t, double>(x, dtype);
  if (x.dtype() == QTN_UINT64) return converted(seen_as(x, QTN_INT64), dtype);
  if (dtype == QTN_UINT32 && is_floating(x.dtype()))
    return from_single ? mapped<float, std::uint32_t>(x, dtype) : mapped<double, std::uint32_t>(x, dtype);
  if (dtype == QTN_UINT64 && is_floating(x.dtype()))
    return from_single ? mapped<float, std::uint64_t>(x, dtype) : mapped<double, std::uint64_t>(x, dtype);
  if (dtype == QTN_UINT32) return mapped<std::int64_t, std::uint32_t>(converted(x, QTN_INT64), dtype);
  if (dtype == QTN_UINT64) return seen_as(converted(x, QTN_INT64), dtype);
  const Tensor y(dtype, x.shape());
  dispatch(x.dtype(), [&](auto from) {
    dispatch(dtype, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      constexpr bool covered = sizeof(From) < 4 || !std::is_unsigned_v<From>,
                     reached = sizeof(To) < 4 || !std::is_unsigned_v<To>;
      if constexpr (covered && reached) map_elements<From, To>(x, y, convert<To, From>);
    });
  });
  return y;
}

}  // namespace

// Types that are only stored go through the type that computes for them.
void cast_elements(const Tensor &given, const Tensor &y, bool saturate) {
  const qdtype to = y.dtype();
  // Integers that a packed type does not have lose their high bits, as in ONNX's reference.
  const Tensor x = is_packed(to) ? converted(to_plain(given), QTN_INT64) : to_plain(given);
  copy_elements(y, from_plain(converted(x, plain_dtype(to)), to, saturate));
}

}  // namespace qtn::ops
