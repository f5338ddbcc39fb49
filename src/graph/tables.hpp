// SPDX-License-Identifier: Apache-2.0
// Elementwise nodes behind one another, or around one value as in x * sigmoid(x), that scalars alone join: whatever they
// compute is a function of one number, and of 8-bit integers a table.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "graph/graph.hpp"

namespace qtn::graph {

struct Table {
  ValueId x;                       ///< what it is a function of
  std::vector<std::size_t> nodes;  ///< in order; the last one gives the result, and only they read what is in between
};

/// The largest one that ends with node n: of that node alone where nothing before it belongs to it. nullopt where the node
/// is no such function itself. `may_join` says of a node before it, and of the value that it makes, whether they may be
/// part of it; `is_float` of a value whether it is float32.
std::optional<Table> table_ending_at(const Graph &g, const Uses &uses, std::size_t n,
                                     const std::function<bool(ValueId)> &is_float,
                                     const std::function<bool(std::size_t, ValueId)> &may_join);

/// Those of a quantized graph that consist of several nodes, from an 8-bit activation to one.
class Tables {
 public:
  explicit Tables(const Graph &g);
  Tables(const Graph &g, const Uses &uses, const std::function<bool(ValueId)> &is_float);

  /// The table that node n gives the result of; nullptr where there is none.
  const Table *ending_at(std::size_t n) const;
  /// Whether the node is part of one.
  bool has(std::size_t n) const { return inside_[n]; }

 private:
  std::vector<Table> tables_;
  std::vector<std::int32_t> of_end_;
  std::vector<bool> inside_;
};

}  // namespace qtn::graph
