// SPDX-License-Identifier: Apache-2.0
// Weights without their zero points as sums of int8.
#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <vector>

#include "core/tensor.hpp"

namespace qtn::graph {

struct Centered {
  std::vector<std::int16_t> values;
  Shape shape;
  std::size_t sum_axis;  ///< counts what is summed: input channels of a group, or rows

  /// Weights of at most eight bits with a zero point, or one for each place along axis `out`, 0 or 1.
  Centered(const Tensor &w, std::size_t out, const std::vector<std::int64_t> &zeros);
};

/// What int8 weights have at one place along an axis: one of the numbers that add up to those of a channel.
struct Reading {
  std::int64_t part, channel;
  auto operator<=>(const Reading &) const = default;
};
using Readings = std::set<Reading>;

/// All channels along sum_axis, and after them those of which a weight does not fit int8, once for each part that it has
/// besides.
Readings readings_of(const Centered &w);

/// Every channel in every part that any has.
Readings all_of(const Readings &some);

/// Whether there are no further parts.
inline bool fit(const Readings &rows) { return rows.empty() || rows.rbegin()->part == 0; }

/// Int8 weights with a place along the axis for each of these, which add up to `w` along it.
Tensor stacked(const Centered &w, std::size_t axis, const std::vector<Reading> &rows, QuantizerPtr quantizer);

}  // namespace qtn::graph
