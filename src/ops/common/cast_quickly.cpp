// SPDX-License-Identifier: Apache-2.0
// Casts that networks have at their ends and around masks, compiled as vectors.
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/common/cast.hpp"
#include "ops/common/convert.hpp"
#include "ops/common/elementwise.hpp"

namespace qtn::ops {
namespace {

template <class From, class To>
bool change(const Tensor &x, const Tensor &y) {
  map_elements<From, To>(x, y, [](From v) { return static_cast<To>(v); });
  return true;
}

template <class From>
bool to_truths(const Tensor &x, const Tensor &y) {
  map_elements<From, std::uint8_t>(x, y, [](From v) { return static_cast<std::uint8_t>(v != 0); });
  return true;
}

/// convert() without branches. The ends of narrow types are floats; the upper one of int32 is not.
template <class To>
bool to_integers(const Tensor &x, const Tensor &y) {
  constexpr bool narrow = sizeof(To) < sizeof(std::int32_t);
  constexpr To largest = std::numeric_limits<To>::max();
  constexpr auto below = static_cast<float>(std::numeric_limits<To>::lowest()), above = static_cast<float>(largest);
  map_elements<float, To>(x, y, [=](float v) {
    float within = narrow ? (v == v ? v : 0.0f) : (v < above ? v : 0.0f);
    within = within > below ? within : below;
    if constexpr (narrow) return static_cast<To>(static_cast<std::int32_t>(within < above ? within : above));
    const auto integer = static_cast<To>(within);
    return v >= above ? largest : integer;
  });
  return true;
}

/// By conversions without bounds, which are no vectors, and by convert() in blocks where one number has no integer.
bool to_long_integers(const Tensor &x, const Tensor &y) {
  constexpr std::int64_t kBlock = 256;
  constexpr float kAbove = 0x1p63f;
  for_blocks(x.count(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin; first < end; first += kBlock) {
      const float *from = x.as<const float>() + first;
      auto *to = y.as<std::int64_t>() + first;
      const std::int64_t count = std::min(kBlock, end - first);
      int outside = 0;
      for (std::int64_t i = 0; i < count; ++i) outside |= !(std::fabs(from[i]) < kAbove);
      if (outside)
        for (std::int64_t i = 0; i < count; ++i) to[i] = convert<std::int64_t>(from[i]);
      else
        for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<std::int64_t>(from[i]);
    }
  });
  return true;
}

bool from_floats(const Tensor &x, const Tensor &y) {
  switch (y.dtype()) {
    case QTN_BOOL:
      return to_truths<float>(x, y);
    case QTN_UINT8:
      return to_integers<std::uint8_t>(x, y);
    case QTN_INT8:
      return to_integers<std::int8_t>(x, y);
    case QTN_INT32:
      return to_integers<std::int32_t>(x, y);
    case QTN_INT64:
      return to_long_integers(x, y);
    case QTN_FLOAT64:
      return change<float, double>(x, y);
    default:
      return false;
  }
}

/// Bits of integers, which the sign changes only where there are more of them.
template <class From>
bool from_integers(const Tensor &x, const Tensor &y) {
  switch (y.dtype()) {
    case QTN_BOOL:
      return to_truths<From>(x, y);
    case QTN_UINT8:
    case QTN_INT8:
      return change<From, std::uint8_t>(x, y);
    case QTN_INT32:
      return change<From, std::int32_t>(x, y);
    case QTN_INT64:
      return change<From, std::int64_t>(x, y);
    case QTN_FLOAT32:
      return change<From, float>(x, y);
    default:
      return false;
  }
}

bool keeps_bytes(qdtype from, qdtype to) {
  return from == to || (dtype_size(from) == dtype_size(to) && !is_floating(from) && !is_floating(to) && to != QTN_BOOL);
}

}  // namespace

bool cast_quickly(const Tensor &x, const Tensor &y) {
  if (x.count() == 0) return true;
  if (keeps_bytes(x.dtype(), y.dtype())) return std::memcpy(y.data(), x.data(), x.nbytes()), true;
  switch (x.dtype()) {
    case QTN_BOOL:
    case QTN_UINT8:
      return from_integers<std::uint8_t>(x, y);
    case QTN_INT8:
      return from_integers<std::int8_t>(x, y);
    case QTN_INT32:
      return from_integers<std::int32_t>(x, y);
    case QTN_INT64:
      return from_integers<std::int64_t>(x, y);
    case QTN_FLOAT32:
      return from_floats(x, y);
    default:
      return false;
  }
}

}  // namespace qtn::ops
