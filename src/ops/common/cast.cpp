// SPDX-License-Identifier: Apache-2.0
#include "ops/common/cast.hpp"

#include <cstring>

#include "base/error.hpp"
#include "ops/common/convert.hpp"
#include "ops/common/elementwise.hpp"

namespace qtn::ops {
namespace {

template <class From, class To>
Tensor mapped(const Tensor &x, qdtype dtype) {
  const Tensor y(dtype, x.shape());
  map_elements<From, To>(x, y, [](From v) { return convert<To>(v); });
  return y;
}

/// The same bytes as another type of as many.
Tensor seen_as(const Tensor &x, qdtype dtype) {
  const Tensor y(dtype, x.shape());
  if (x.count() > 0) std::memcpy(y.data(), x.data(), x.nbytes());
  return y;
}

bool is_wide_unsigned(qdtype dtype) { return dtype == QTN_UINT32 || dtype == QTN_UINT64; }

/// Contiguous tensors of types that compute, but the wide unsigned ones.
void convert_directly(const Tensor &x, const Tensor &y) {
  dispatch(x.dtype(), [&](auto from) {
    dispatch(y.dtype(), [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      constexpr bool covered = sizeof(From) < 4 || !std::is_unsigned_v<From>,
                     reached = sizeof(To) < 4 || !std::is_unsigned_v<To>;
      if constexpr (covered && reached) map_elements<From, To>(x, y, [](From v) { return convert<To>(v); });
    });
  });
}

/// Converts between types that compute. Wide unsigned integers go through int64, which has their bits, but from and to
/// floats.
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
  convert_directly(x, y);
  return y;
}

}  // namespace

// Types that are only stored go through the type that computes for them.
void cast_elements(const Tensor &given, const Tensor &y, bool saturate, PowerRounding rounding) {
  const qdtype to = y.dtype();
  if (to == QTN_FLOAT8E8M0) {
    const Tensor reals = converted(to_plain(given), QTN_FLOAT32), powers(to, y.shape());
    map_elements<float, std::uint8_t>(reals, powers, [&](float v) { return encode_exponent(v, saturate, rounding); });
    return copy_elements(y, powers);
  }
  // Integers that a packed type does not have lose their high bits, as in ONNX's reference.
  const Tensor x = is_packed_integer(to) ? converted(to_plain(given), QTN_INT64) : to_plain(given);
  if (plain_dtype(to) == to && y.contiguous() && !is_wide_unsigned(to) && !is_wide_unsigned(x.dtype()))
    return cast_quickly(x, y) ? void() : convert_directly(x, y);
  copy_elements(y, from_plain(converted(x, plain_dtype(to)), to, saturate));
}

PowerRounding power_rounding(const char *op, const Attrs &attrs) {
  const std::string mode = attrs.get_string("round_mode", "up");
  if (mode == "up") return PowerRounding::up;
  if (mode == "down") return PowerRounding::down;
  if (mode == "nearest") return PowerRounding::nearest;
  fail(QTN_EINVAL, op, ": round_mode is \"", mode, "\", not \"up\", \"down\" or \"nearest\"");
}

}  // namespace qtn::ops
