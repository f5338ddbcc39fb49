// SPDX-License-Identifier: Apache-2.0
// The index of the largest or smallest element along an axis, for ArgMax and ArgMin.
#pragma once

#include "ops/common/extremum.hpp"

namespace qtn::ops {

inline constexpr AttrSpec kArgAttrs[] = {
    {"axis", AttrSpec::kInt}, {"keepdims", AttrSpec::kInt}, {"select_last_index", AttrSpec::kInt}};

inline std::size_t arg_axis(const char *op, const Call &call) {
  return normalize_axis(call.attrs.get_int("axis", 0), call.in(0)->rank(), op);
}

inline Types infer_arg(const char *op, const Call &call) {
  const Tensor &x = *call.in(0);
  require_number(op, "x", x);
  const std::size_t axis = arg_axis(op, call);
  if (x.dim(axis) == 0) fail(QTN_ESHAPE, op, ": x ", to_string(x.shape()), " has no elements along axis ", axis);
  Shape shape = x.shape();
  call.attrs.get_int("keepdims", 1) != 0 ? void(shape[axis] = 1) : shape.erase(axis);
  return {{QTN_INT64, shape}};
}

/// The same as run_arg() for contiguous float32, by kernels.
void run_arg_floats(bool largest, bool last, const Tensor &x, std::size_t axis, const Tensor &y);

/// Takes the first of equal elements, or the last; NaN is beyond every number.
template <class Extremum>
void run_arg(std::size_t axis, const Call &call, const Tensor &y, Extremum extremum) {
  const Tensor &x = *call.in(0);
  const std::int64_t length = x.dim(axis), inner = element_count(x.shape(), axis + 1, x.rank());
  const bool last = call.attrs.get_int("select_last_index", 0) != 0;
  constexpr bool largest = std::is_same_v<Extremum, Larger>;
  // Kernels number 2^31 places.
  if (x.dtype() == QTN_FLOAT32 && length <= std::numeric_limits<std::int32_t>::max())
    return run_arg_floats(largest, last, x, axis, y);
  dispatch_number(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto wins = [&](T v, T top) __attribute__((always_inline)) {
      const bool equal = v == top || (is_nan(v) && is_nan(top));
      return equal ? last : is_nan(v) || extremum(v, top) == v;
    };
    for_neighbours(element_count(x.shape(), 0, axis), inner, [&](std::int64_t outer, std::int64_t first, auto count) {
      const T *from = x.as<const T>() + outer * length * inner + first;
      T tops[kNeighbours];
      std::int64_t best[kNeighbours];
      for (std::int64_t i = 0; i < count; ++i) tops[i] = from[i], best[i] = 0;
      for (std::int64_t k = 1; k < length; ++k) {
        from += inner;
        for (std::int64_t i = 0; i < count; ++i)
          if (wins(from[i], tops[i])) best[i] = k, tops[i] = from[i];
      }
      std::copy_n(best, std::int64_t{count}, y.as<std::int64_t>() + outer * inner + first);
    });
  });
}

}  // namespace qtn::ops
