// SPDX-License-Identifier: Apache-2.0
// Casts that networks have at their ends and around masks, compiled as vectors.
#include "ops/common/cast.hpp"
#include "ops/common/elementwise.hpp"

namespace qtn::ops {
namespace {

template <class From>
bool to_floats(const Tensor &x, const Tensor &y) {
  map_elements<From, float>(x, y, [](From v) { return static_cast<float>(v); });
  return true;
}

template <class From>
bool to_bools(const Tensor &x, const Tensor &y) {
  map_elements<From, std::uint8_t>(x, y, [](From v) { return static_cast<std::uint8_t>(v != 0); });
  return true;
}

}  // namespace

bool cast_quickly(const Tensor &x, const Tensor &y) {
  if (y.dtype() == QTN_FLOAT32) {
    if (x.dtype() == QTN_BOOL || x.dtype() == QTN_UINT8) return to_floats<std::uint8_t>(x, y);
    if (x.dtype() == QTN_INT32) return to_floats<std::int32_t>(x, y);
  } else if (y.dtype() == QTN_BOOL) {
    if (x.dtype() == QTN_FLOAT32) return to_bools<float>(x, y);
    if (x.dtype() == QTN_INT32) return to_bools<std::int32_t>(x, y);
    if (x.dtype() == QTN_INT64) return to_bools<std::int64_t>(x, y);
  }
  return false;
}

}  // namespace qtn::ops
