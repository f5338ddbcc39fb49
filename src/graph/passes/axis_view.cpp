// SPDX-License-Identifier: Apache-2.0
#include "graph/passes/axis_view.hpp"

#include <algorithm>
#include <numeric>

#include "graph/facts.hpp"

namespace qtn::graph {
namespace {

bool holds(const std::vector<std::size_t> &axes, std::size_t axis) {
  return std::ranges::find(axes, axis) != axes.end();
}

std::optional<AxisView> transposed(const AxisView &view, const Node &node) {
  const std::size_t rank = view.axes.size();
  std::vector<std::int64_t> perm = node.attrs.get_ints("perm");
  if (perm.empty())
    for (std::size_t i = rank; i-- > 0;) perm.push_back(static_cast<std::int64_t>(i));
  const auto order = axes_from_front(perm, rank);
  if (!order || order->size() != rank) return std::nullopt;
  AxisView made{view.rank, {}};
  for (const std::size_t axis : *order) made.axes.push_back(view.axes[axis]);
  return made;
}

std::optional<AxisView> squeezed(const AxisView &view, const Graph &g, const Node &node) {
  const auto gone = constant_axes_of(g, input_of(node, 1), view.axes.size());
  if (!gone) return std::nullopt;
  AxisView made{view.rank, {}};
  for (std::size_t i = 0; i < view.axes.size(); ++i)
    if (!holds(*gone, i)) made.axes.push_back(view.axes[i]);
  return made;
}

std::optional<AxisView> unsqueezed(const AxisView &view, const Graph &g, const Node &node) {
  const ValueId given = input_of(node, 1);
  if (given == kNoValue || !g.value(given).is_constant()) return std::nullopt;
  const std::size_t rank = view.axes.size() + static_cast<std::size_t>(g.value(given).constant.count());
  const auto fresh = constant_axes_of(g, given, rank);
  const std::vector<std::size_t> free = view.left_out();
  if (!fresh || fresh->size() > free.size()) return std::nullopt;
  AxisView made{view.rank, {}};
  std::size_t taken = 0, old = 0;
  for (std::size_t i = 0; i < rank; ++i) made.axes.push_back(holds(*fresh, i) ? free[taken++] : view.axes[old++]);
  return made;
}

}  // namespace

AxisView AxisView::identity(std::size_t rank) {
  AxisView view{rank, std::vector<std::size_t>(rank)};
  std::iota(view.axes.begin(), view.axes.end(), std::size_t{0});
  return view;
}

std::vector<std::size_t> AxisView::left_out() const {
  std::vector<std::size_t> missing;
  for (std::size_t axis = 0; axis < rank; ++axis)
    if (!holds(axes, axis)) missing.push_back(axis);
  return missing;
}

std::vector<std::size_t> AxisView::permutation() const {
  std::vector<std::size_t> perm;
  for (const std::size_t axis : axes)
    perm.push_back(
        static_cast<std::size_t>(std::ranges::count_if(axes, [&](std::size_t other) { return other < axis; })));
  return perm;
}

std::size_t AxisView::node_count() const {
  return (axes.size() < rank ? 1 : 0) + (std::ranges::is_sorted(axes) ? 0 : 1);
}

std::optional<AxisView> AxisView::behind(const Graph &g, const Node &node) const {
  const std::string_view op = node.op->name;
  if (op == "Transpose") return transposed(*this, node);
  if (op == "Squeeze") return graph::squeezed(*this, g, node);
  if (op == "Unsqueeze") return unsqueezed(*this, g, node);
  return std::nullopt;
}

std::optional<std::vector<std::size_t>> axes_from_front(std::vector<std::int64_t> axes, std::size_t rank) {
  std::vector<std::size_t> made;
  for (const std::int64_t axis : axes) {
    const std::int64_t from_front = axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
    if (from_front < 0 || from_front >= static_cast<std::int64_t>(rank)) return std::nullopt;
    if (holds(made, static_cast<std::size_t>(from_front))) return std::nullopt;
    made.push_back(static_cast<std::size_t>(from_front));
  }
  return made;
}

std::optional<std::vector<std::size_t>> constant_axes_of(const Graph &g, ValueId v, std::size_t rank) {
  if (v == kNoValue || !g.value(v).is_constant() || g.value(v).constant.dtype() != QTN_INT64) return std::nullopt;
  return axes_from_front(int_values(g.value(v).constant, "axes"), rank);
}

}  // namespace qtn::graph
