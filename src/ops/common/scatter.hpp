// SPDX-License-Identifier: Apache-2.0
// What happens where ScatterElements and ScatterND meet an element.
#pragma once

#include <algorithm>
#include <span>
#include <string>

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

/// Elements of a contiguous y that meet those of contiguous updates, each of which changes what it meets.
class Scattering {
 public:
  Scattering(const Call &call, const Tensor &y, const Tensor &updates);

  /// `count` elements from `to` on meet the updates from `from` on.
  void row(std::int64_t to, std::int64_t from, std::int64_t count) const {
    scatter_(y_ + to * size_, nullptr, updates_ + from * size_, count);
  }
  /// Elements of these offsets meet the updates from `from` on, one after the other: several may be one element.
  void elements(std::span<const std::int64_t> offsets, std::int64_t from) const {
    scatter_(y_, offsets.data(), updates_ + from * size_, static_cast<std::int64_t>(offsets.size()));
  }

 private:
  const std::int64_t size_;  ///< of an element, in bytes
  std::byte *y_;
  const std::byte *updates_;
  void (*scatter_)(void *y, const std::int64_t *offsets, const void *updates, std::int64_t count);
};

}  // namespace qtn::ops
