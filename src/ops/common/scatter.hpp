// SPDX-License-Identifier: Apache-2.0
// What happens where ScatterElements and ScatterND meet an element.
#pragma once

#include <algorithm>
#include <string>

#include "ops/common/contiguous.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {

/// In the order of their names.
enum class ScatterRule { none, add, mul, max, min };

inline ScatterRule scatter_rule(const char *op, const Attrs &attrs) {
  constexpr std::string_view kNames[] = {"none", "add", "mul", "max", "min"};
  const std::string reduction = attrs.get_string("reduction", "none");
  const auto at = std::find(std::begin(kNames), std::end(kNames), reduction);
  if (at == std::end(kNames))
    fail(QTN_EINVAL, op, ": reduction is \"", reduction, "\", not none, add, mul, max or min");
  return static_cast<ScatterRule>(at - std::begin(kNames));
}

/// Checks the attribute and that the element types go with it.
inline void check_scatter(const char *op, const Call &call) {
  const Tensor &x = *call.in(0), &indices = *call.in(1), &updates = *call.in(2);
  require_dtype(op, "indices", indices, {QTN_INT64, QTN_INT32});
  require_same_dtype(op, x, updates);
  if (scatter_rule(op, call.attrs) != ScatterRule::none) require_number(op, "x", x);
}

/// Elements take the place of others, are kept, or are chosen among.
inline bool scatter_moves(const Attrs &attrs) {
  const ScatterRule rule = scatter_rule("Scatter", attrs);
  return rule == ScatterRule::none || rule == ScatterRule::max || rule == ScatterRule::min;
}

/// What an element becomes as it meets another. Integers wrap around; NaN stays, and is taken.
template <class T>
T scattered(ScatterRule rule, T a, T b) {
  const auto sum_or_product = [rule](auto u, auto v) { return rule == ScatterRule::add ? u + v : u * v; };
  if (rule == ScatterRule::max) return b > a || b != b ? b : a;
  if (rule == ScatterRule::min) return b < a || b != b ? b : a;
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(sum_or_product(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
  else
    return sum_or_product(a, b);
}

/// Calls each(elements of y, elements of the updates, f), both contiguous: element a of y becomes f(a, b) as it meets
/// element b of the updates.
template <class Each>
void scatter_into(const Call &call, const Tensor &y, const Tensor &updates, Each &&each) {
  const ScatterRule rule = scatter_rule("Scatter", call.attrs);
  if (rule == ScatterRule::none)
    return dispatch_width(y.dtype(), [&](auto zero) {
      using T = decltype(zero);
      each(y.as<T>(), updates.as<const T>(), [](T, T b) { return b; });
    });
  dispatch_number(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    each(y.as<T>(), updates.as<const T>(), [rule](T a, T b) { return scattered(rule, a, b); });
  });
}

}  // namespace qtn::ops
