// SPDX-License-Identifier: Apache-2.0
// What stands before a value, for passes that look for formulas of several nodes.
#pragma once

#include <limits>
#include <optional>
#include <string_view>

#include "graph/facts.hpp"
#include "graph/passes/passes.hpp"

namespace qtn::graph {

/// The node that makes v; nullptr where v is an input, a constant, or absent.
inline const Node *maker_of(const Graph &g, const Uses &uses, ValueId v) {
  const std::int32_t n = v == kNoValue ? -1 : uses.producer[static_cast<std::size_t>(v)];
  return n < 0 ? nullptr : &g.nodes[static_cast<std::size_t>(n)];
}

/// The same where v is what the node computes: no grid rounds it, and no clamp bounds it, unless that is asked for.
inline const Node *exact_maker_of(const Graph &g, const Uses &uses, ValueId v, bool clamped = false) {
  const Node *node = maker_of(g, uses, v);
  return node && !g.value(v).quantizer && (clamped || !node->clamp) ? node : nullptr;
}

/// The same where v is all that the node makes, and one other node alone reads it.
inline const Node *inner_of(const Graph &g, const Uses &uses, ValueId v, bool clamped = false) {
  const Node *node = exact_maker_of(g, uses, v, clamped);
  return node && node->outputs.size() == 1 && uses.single_use(v) ? node : nullptr;
}

inline constexpr std::int64_t kAnyRank = std::numeric_limits<std::int64_t>::max();

/// A constant of one float that gives no more axes to what it meets, which has `rank` of them at least.
inline std::optional<double> number_of(const Graph &g, ValueId v, std::int64_t rank) {
  const Tensor *t = float_constant(g, v);
  if (!t || t->count() != 1 || (t->rank() > 0 && static_cast<std::int64_t>(t->rank()) > rank)) return std::nullopt;
  return static_cast<double>(*t->to_contiguous().as<const float>());
}

/// Formulas of float32, for all of whose nodes the filter holds.
class FloatPattern {
 public:
  FloatPattern(const Graph &g, const Facts &facts, const NodeFilter &only) : g_(g), facts_(facts), only_(only) {}

  /// Whether the node may be the end of one.
  bool holds(const Node &node) const {
    return node.outputs.size() == 1 && facts_.is_float(node.outputs[0]) && only_(node);
  }

  /// The node of this operator that computes v.
  const Node *maker(ValueId v, std::string_view op, bool clamped = false) const {
    const Node *node = exact_maker_of(g_, facts_.uses, v, clamped);
    return node && node->op->name == op && holds(*node) ? node : nullptr;
  }
  /// The same where one other node alone reads v.
  const Node *inner(ValueId v, std::string_view op, bool clamped = false) const {
    return v != kNoValue && facts_.uses.single_use(v) ? maker(v, op, clamped) : nullptr;
  }

 private:
  const Graph &g_;
  const Facts &facts_;
  const NodeFilter &only_;
};

}  // namespace qtn::graph
