// SPDX-License-Identifier: Apache-2.0
#include "quant/concat_grids.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "base/stable_order.hpp"
#include "core/choose_options.hpp"

namespace qtn::quant {
namespace {

/// A Concat's operand and its result, where their groups differ.
struct Edge {
  std::size_t part, whole;
};

std::size_t group_of(const Placement &p, graph::ValueId v) {
  return static_cast<std::size_t>(p.group[static_cast<std::size_t>(v)]);
}

bool has_grid(const Placement &p, graph::ValueId v) {
  return v != graph::kNoValue && p.group[static_cast<std::size_t>(v)] >= 0;
}

/// Chosen from data, over all integers of a type.
bool may_change(const Group &group) { return !group.fixed && !given_range(group.settings.activation, "convert"); }

std::vector<Edge> edges_of(const graph::Graph &g, const Placement &p, const std::vector<QuantizerPtr> &grids) {
  std::vector<Edge> edges;
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    if (!joins(p, g.nodes[n], n)) continue;
    const std::size_t whole = group_of(p, g.nodes[n].outputs[0]);
    for (const graph::ValueId v : g.nodes[n].inputs) {
      if (!has_grid(p, v) || group_of(p, v) == whole) continue;
      const std::size_t part = group_of(p, v);
      if (may_change(p.groups[part]) && may_change(p.groups[whole]) && grids[part]->dtype() == grids[whole]->dtype())
        edges.push_back({part, whole});
    }
  }
  return edges;
}

/// Groups that are read by more than Concats and what moves integers within the group.
std::vector<bool> read_by_others(const graph::Graph &g, const Placement &p) {
  std::vector<bool> read(p.groups.size(), false);
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    const graph::Node &node = g.nodes[n];
    const bool moving = p.nodes[n].integer && p.nodes[n].role == Role::moving;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (has_grid(p, node.inputs[i]) && !(moving && moves_operand(node, i))) read[group_of(p, node.inputs[i])] = true;
  }
  for (const graph::ValueId v : g.outputs)
    if (has_grid(p, v)) read[group_of(p, v)] = true;
  return read;
}

/// The finest step in which a node sees a group: its own, but of one that only Concats read that of the finest result.
std::vector<double> finest_steps(const graph::Graph &g, const Placement &p, const std::vector<QuantizerPtr> &grids,
                                 const std::vector<Edge> &edges) {
  const std::vector<bool> others = read_by_others(g, p);
  std::vector<double> steps, results(grids.size(), std::numeric_limits<double>::infinity());
  for (const QuantizerPtr &q : grids) steps.push_back(q->scales()[0]);
  for (const Edge &edge : edges) results[edge.part] = std::min(results[edge.part], steps[edge.whole]);
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (!others[i] && std::isfinite(results[i])) steps[i] = std::max(steps[i], results[i]);
  return steps;
}

/// Whether the integers of one grid reach as far as those of the other, except for what rounding does to a range.
bool covers(const Quantizer &wide, const Quantizer &narrow) {
  const IntegerRange range = integer_range(wide.dtype());
  const float half = wide.scale() / 2;
  return wide.dequantize(range.lo) - half <= narrow.dequantize(range.lo) &&
         narrow.dequantize(range.hi) <= wide.dequantize(range.hi) + half;
}

}  // namespace

void share_concat_grids(const graph::Graph &g, const Placement &placement, std::vector<QuantizerPtr> &grids) {
  std::vector<Edge> edges = edges_of(g, placement, grids);
  std::vector<double> finest = finest_steps(g, placement, grids, edges);  // of a cluster
  const auto factor = [steps = finest](const Edge &e) {
    return std::max(steps[e.part], steps[e.whole]) / std::min(steps[e.part], steps[e.whole]);
  };
  edges = stably_sorted(std::move(edges), [&](const Edge &a, const Edge &b) { return factor(a) < factor(b); });
  std::vector<std::size_t> cluster(
      grids.size());  // another group of the same cluster, or the one that it is named after
  std::iota(cluster.begin(), cluster.end(), std::size_t{0});
  const auto cluster_of = [&](std::size_t group) {
    while (cluster[group] != group) group = cluster[group] = cluster[cluster[group]];
    return group;
  };
  std::vector<QuantizerPtr> grid = grids;  // of a cluster
  for (const Edge &edge : edges) {
    const std::size_t a = cluster_of(edge.part), b = cluster_of(edge.whole);
    if (a == b) continue;
    const bool a_is_wide = grid[a]->scales()[0] > grid[b]->scales()[0];
    const QuantizerPtr wide = grid[a_is_wide ? a : b], narrow = grid[a_is_wide ? b : a];
    const double least = std::min(finest[a], finest[b]);
    if (wide->scales()[0] >= std::numbers::sqrt2 * least || !covers(*wide, *narrow)) continue;
    cluster[a] = b;
    grid[b] = wide;
    finest[b] = least;
  }
  for (std::size_t i = 0; i < grids.size(); ++i) grids[i] = grid[cluster_of(i)];
}

}  // namespace qtn::quant
