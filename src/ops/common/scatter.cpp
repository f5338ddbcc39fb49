// SPDX-License-Identifier: Apache-2.0
#include "ops/common/scatter.hpp"

#include "ops/common/contiguous.hpp"
#include "ops/common/elementwise.hpp"

namespace qtn::ops {
namespace {

/// What an element becomes as it meets another. Integers wrap around; NaN stays, and is taken.
template <ScatterRule rule, class T>
T scattered(T a, T b) {
  using Wide = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;
  if constexpr (rule == ScatterRule::add) return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
  if constexpr (rule == ScatterRule::mul) return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
  if constexpr (rule == ScatterRule::max) return ((b > a) | (b != b)) ? b : a;
  if constexpr (rule == ScatterRule::min) return ((b < a) | (b != b)) ? b : a;
  return b;
}

/// Rows of floats, which networks scatter, are vectors.
template <ScatterRule rule, class T>
void scatter(void *y, const std::int64_t *offsets, const void *updates, std::int64_t count) {
  T *to = static_cast<T *>(y);
  const T *from = static_cast<const T *>(updates);
  const auto meet = [](T &a, T b) { a = scattered<rule>(a, b); };
  if (rule == ScatterRule::none && !offsets)
    std::copy_n(from, count, to);
  else if (std::is_same_v<T, float> && !offsets)
    for (std::int64_t i = 0; i < count; ++i) meet(to[i], from[i]);
  else
    for (std::int64_t i = 0; i < count; ++i) meet(to[offsets ? offsets[i] : i], from[i]);
}

}  // namespace

Scattering::Scattering(const Call &call, const Tensor &y, const Tensor &updates)
    : size_(static_cast<std::int64_t>(dtype_size(y.dtype()))),
      y_(y.as<std::byte>()),
      updates_(updates.as<const std::byte>()) {
  switch (scatter_rule("Scatter", call.attrs)) {
    case ScatterRule::none:
      dispatch_width(y.dtype(), [&]<class T>(T) { scatter_ = scatter<ScatterRule::none, T>; });
      break;
    case ScatterRule::add:
      dispatch_wrapping(y.dtype(), [&]<class T>(T) { scatter_ = scatter<ScatterRule::add, T>; });
      break;
    case ScatterRule::mul:
      dispatch_wrapping(y.dtype(), [&]<class T>(T) { scatter_ = scatter<ScatterRule::mul, T>; });
      break;
    case ScatterRule::max:
      dispatch_number(y.dtype(), [&]<class T>(T) { scatter_ = scatter<ScatterRule::max, T>; });
      break;
    case ScatterRule::min:
      dispatch_number(y.dtype(), [&]<class T>(T) { scatter_ = scatter<ScatterRule::min, T>; });
      break;
  }
}

}  // namespace qtn::ops
