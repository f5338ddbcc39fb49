// SPDX-License-Identifier: Apache-2.0
#include "graph/tables.hpp"

#include <algorithm>
#include <set>

#include "graph/facts.hpp"
#include "graph/integer.hpp"

namespace qtn::graph {
namespace {

constexpr std::size_t kMostNodes = 32;

class TableFinder {
 public:
  TableFinder(const Graph &g, const Uses &uses, const std::function<bool(ValueId)> &is_float)
      : g_(g), uses_(uses), is_float_(is_float) {}

  std::optional<Table> find(std::size_t n, const std::function<bool(std::size_t, ValueId)> &may_join) {
    if (!take(n)) return std::nullopt;
    std::optional<Table> found;
    while (!open_.empty()) {
      const auto [maker, v] = *open_.rbegin();
      if (open_.size() == 1) found = Table{v, {nodes_.rbegin(), nodes_.rend()}};
      if (maker < 0 || nodes_.size() == kMostNodes) break;
      const auto before = static_cast<std::size_t>(maker);
      if (!read_inside(v) || !may_join(before, v) || !take(before)) break;
      open_.erase({maker, v});
    }
    return found;
  }

 private:
  bool read_inside(ValueId v) const {
    const auto &readers = uses_.consumers[static_cast<std::size_t>(v)];
    return !uses_.is_output[static_cast<std::size_t>(v)] && std::ranges::all_of(readers, [&](std::int32_t reader) {
      return std::ranges::find(nodes_, static_cast<std::size_t>(reader)) != nodes_.end();
    });
  }

  /// Adds a node and what it reads, or nothing.
  bool take(std::size_t n) {
    const Node &node = g_.nodes[n];
    if (!node.op->elementwise || node.outputs.size() != 1 || node.outputs[0] == kNoValue || !is_float_(node.outputs[0]))
      return false;
    std::vector<ValueId> activations;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (v == kNoValue) continue;
      if (!g_.value(v).is_constant()) {
        if (i >= node.op->numbers_from) return false;
        activations.push_back(v);
      } else if (g_.value(v).constant.count() != 1) {
        return false;
      }
    }
    if (!std::ranges::all_of(activations, is_float_)) return false;
    for (const ValueId v : activations) open_.insert({uses_.producer[static_cast<std::size_t>(v)], v});
    nodes_.push_back(n);
    return true;
  }

  const Graph &g_;
  const Uses &uses_;
  const std::function<bool(ValueId)> &is_float_;
  std::vector<std::size_t> nodes_;  // the last one first
  // What they read from others, by maker: the latest is looked at next.
  std::set<std::pair<std::int32_t, ValueId>> open_;
};

}  // namespace

std::optional<Table> table_ending_at(const Graph &g, const Uses &uses, std::size_t n,
                                     const std::function<bool(ValueId)> &is_float,
                                     const std::function<bool(std::size_t, ValueId)> &may_join) {
  return TableFinder(g, uses, is_float).find(n, may_join);
}

Tables::Tables(const Graph &g) {
  const Facts facts(g);
  *this = Tables(g, facts.uses, [&](ValueId v) { return facts.is_float(v); });
}

Tables::Tables(const Graph &g, const Uses &uses, const std::function<bool(ValueId)> &is_float)
    : of_end_(g.nodes.size(), -1), inside_(g.nodes.size(), false) {
  const auto is_plain = [&](std::size_t, ValueId v) { return !g.value(v).quantizer; };
  for (std::size_t n = g.nodes.size(); n-- > 0;) {
    const Node &node = g.nodes[n];
    if (inside_[n] || !node.op->elementwise || node.outputs.size() != 1 || node.outputs[0] == kNoValue ||
        !is_8bit_activation(g.value(node.outputs[0]).quantizer))
      continue;
    std::optional<Table> table = table_ending_at(g, uses, n, is_float, is_plain);
    if (!table || table->nodes.size() < 2 || !is_8bit_activation(g.value(table->x).quantizer)) continue;
    for (const std::size_t inner : table->nodes) inside_[inner] = true;
    of_end_[n] = static_cast<std::int32_t>(tables_.size());
    tables_.push_back(std::move(*table));
  }
}

const Table *Tables::ending_at(std::size_t n) const {
  return of_end_[n] < 0 ? nullptr : &tables_[static_cast<std::size_t>(of_end_[n])];
}

}  // namespace qtn::graph
