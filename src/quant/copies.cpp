// SPDX-License-Identifier: Apache-2.0
#include "quant/copies.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "graph/unique_names.hpp"

namespace qtn::quant {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

class Copies {
 public:
  Copies(Graph &g, const Placement &placement, const Config &config)
      : g_(g), p_(placement), config_(config), uses_(g), copy_of_(g.values.size(), graph::kNoValue) {
    for (const graph::Value &value : g.values) names_.take(value.name);
    for (const Node &node : g.nodes) names_.take(node.name);
  }

  bool run() {
    std::vector<Node> nodes;
    for (const ValueId v : std::vector(g_.inputs))
      if (uses_.is_output[index(v)] && read_both_ways(v)) nodes.push_back(copy(v));
    bool any = !nodes.empty();
    for (std::size_t n = 0; n < p_.nodes.size(); ++n) {
      Node node = std::move(g_.nodes[n]);
      if (p_.nodes[n].integer)
        for (ValueId &v : node.inputs)
          if (v != graph::kNoValue && copy_of_[index(v)] != graph::kNoValue) v = copy_of_[index(v)];
      nodes.push_back(std::move(node));
      if (p_.nodes[n].integer) continue;
      const std::vector<ValueId> made = nodes.back().outputs;
      for (const ValueId v : made)
        if (v != graph::kNoValue && read_both_ways(v)) {
          nodes.push_back(copy(v));
          any = true;
        }
    }
    g_.nodes = std::move(nodes);
    return any;
  }

 private:
  static std::size_t index(ValueId v) { return static_cast<std::size_t>(v); }

  bool read_both_ways(ValueId v) const {
    if (p_.group[index(v)] < 0 || config_.names_tensor(g_.value(v).name)) return false;
    bool as_integers = false, in_float = uses_.is_output[index(v)];
    for (const std::int32_t reader : uses_.consumers[index(v)]) {
      const auto n = static_cast<std::size_t>(reader);
      as_integers = as_integers || p_.nodes[n].integer;
      in_float = in_float || (!p_.nodes[n].integer && !g_.nodes[n].op->reads_shapes);
    }
    return as_integers && in_float;
  }

  Node copy(ValueId v) {
    graph::Value value = g_.value(v);
    const std::string name = value.name;
    if (uses_.is_output[index(v)])
      value.name = names_.make(name + "_quantized");
    else
      g_.value(v).name = names_.make(name + "_float");
    const ValueId made = copy_of_[index(v)] = g_.add_value(std::move(value));
    return copy_node(names_.make(name + "_QuantizeLinear"), v, made);
  }

  Graph &g_;
  const Placement &p_;
  const Config &config_;
  const graph::Uses uses_;
  std::vector<ValueId> copy_of_;
  graph::UniqueNames names_;
};

}  // namespace

bool copy_for_integer_readers(Graph &g, const Placement &placement, const Config &config) {
  return Copies(g, placement, config).run();
}

Node copy_node(const std::string &name, ValueId from, ValueId to) {
  return {name, &ops::kIdentity, {}, {from}, {to}, {}};
}

bool is_copy(const Node &node) { return node.op == &ops::kIdentity; }

}  // namespace qtn::quant
