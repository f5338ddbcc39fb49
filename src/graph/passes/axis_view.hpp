// SPDX-License-Identifier: Apache-2.0
// A value as a view of another one: axes in another order, some of length 1 left out.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.hpp"

namespace qtn::graph {

struct AxisView {
  std::size_t rank = 0;           ///< of what is viewed
  std::vector<std::size_t> axes;  ///< by axis of the view, which axis of that it is

  bool operator==(const AxisView &) const = default;

  static AxisView identity(std::size_t rank);
  bool is_identity() const { return *this == identity(rank); }

  /// Axes that the view leaves out, which are of length 1, in ascending order.
  std::vector<std::size_t> left_out() const;

  /// The Transpose behind a Squeeze of those axes that makes the view.
  std::vector<std::size_t> permutation() const;
  /// How many of these two nodes it takes.
  std::size_t node_count() const;

  /// What a Transpose, a Squeeze or an Unsqueeze makes of the view; nullopt for any other node, or where it makes an axis
  /// that what is viewed does not have.
  std::optional<AxisView> behind(const Graph &g, const Node &node) const;
};

/// Axes counted from the front, each of them once; nullopt where one is outside.
std::optional<std::vector<std::size_t>> axes_from_front(std::vector<std::int64_t> axes, std::size_t rank);

/// The same of a constant; nullopt where the value is computed.
std::optional<std::vector<std::size_t>> constant_axes_of(const Graph &g, ValueId v, std::size_t rank);

}  // namespace qtn::graph
