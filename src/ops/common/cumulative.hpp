// SPDX-License-Identifier: Apache-2.0
// Sums or products of all elements up to each along an axis.
#pragma once

#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {

inline constexpr AttrSpec kCumulativeAttrs[] = {{"exclusive", AttrSpec::kInt}, {"reverse", AttrSpec::kInt}};

inline std::size_t cumulative_axis(const char *op, const Call &call) {
  const Tensor &t = *call.in(1);
  const std::int64_t axis = t.dtype() == QTN_INT32 ? *t.as<const std::int32_t>() : *t.as<const std::int64_t>();
  return normalize_axis(axis, call.in(0)->rank(), op);
}

inline Types infer_cumulative(const char *op, const Call &call) {
  require_dtype(op, "axis", *call.in(1), {QTN_INT64, QTN_INT32});
  if (call.in(1)->count() != 1)
    fail(QTN_ESHAPE, op, ": axis must be one number, it is ", to_string(call.in(1)->shape()));
  if (call.in(1)->has_data()) cumulative_axis(op, call);
  return infer_number_unary(op, call);
}

/// y[k] = x up to k, or before it, joined one after the other; in reverse those behind. `start` is that of none.
template <class T, class Join>
void accumulate(const Tensor &x, const Tensor &y, std::size_t axis, bool exclusive, bool reverse, int start,
                Join &&join) {
  using Wide = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
  if (x.count() == 0) return;
  const std::int64_t length = x.dim(axis), inner = element_count(x.shape(), axis + 1, x.rank());
  for_neighbours(x.count() / length / inner, inner, [&](std::int64_t outer, std::int64_t first, auto count) {
    Wide joined[kNeighbours];
    for (std::int64_t i = 0; i < count; ++i) joined[i] = static_cast<Wide>(start);
    for (std::int64_t k = 0; k < length; ++k) {
      const std::int64_t at = (outer * length + (reverse ? length - 1 - k : k)) * inner + first;
      const T *from = x.as<const T>() + at;
      T *to = y.as<T>() + at;
      const auto store = [&] {
        for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(joined[i]);
      };
      if (exclusive) store();
      for (std::int64_t i = 0; i < count; ++i) joined[i] = join(joined[i], static_cast<Wide>(from[i]));
      if (!exclusive) store();
    }
  });
}

template <class Join>
void run_cumulative(const char *op, const Call &call, const Tensor &y, int start, Join &&join) {
  const bool exclusive = call.attrs.get_int("exclusive", 0) != 0, reverse = call.attrs.get_int("reverse", 0) != 0;
  dispatch_wrapping(y.dtype(), [&](auto zero) {
    accumulate<decltype(zero)>(*call.in(0), y, cumulative_axis(op, call), exclusive, reverse, start, join);
  });
}

}  // namespace qtn::ops
