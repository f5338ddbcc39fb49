// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "graph/passes/passes.hpp"
#include "graph/unique_names.hpp"

namespace qtn::graph {
namespace {

/// Where the states of a Loop or Scan stand: the body's inputs and those of the node, and the body's outputs.
struct States {
  std::size_t first_input = 0, first_output = 0, count = 0;
};

States states_of(const Node &node) {
  const std::size_t own = node.inputs.size() - node.captured;
  if (node.op == &ops::kLoop) return {2, 1, own - std::min<std::size_t>(own, 2)};
  if (node.op != &ops::kScan) return {};
  const auto scanned = static_cast<std::size_t>(node.attrs.get_int("num_scan_inputs", 0));
  return {0, 0, own - std::min(own, scanned)};
}

/// What each output of a body is before Identity nodes.
std::vector<ValueId> origins_of(const Graph &body) {
  std::map<ValueId, ValueId> before;
  for (const Node &node : body.nodes)
    if (node.op == &ops::kIdentity) before[node.outputs[0]] = node.inputs[0];
  std::vector<ValueId> origins = body.outputs;
  for (ValueId &v : origins)
    for (auto at = before.find(v); at != before.end(); at = before.find(v)) v = at->second;
  return origins;
}

/// The states that every iteration hands on as they were, unless they are another output of the body, too, or on a grid.
std::vector<std::size_t> invariants_of(const Graph &g, const Node &node) {
  const Graph &body = *node.bodies[0];
  const States states = states_of(node);
  std::vector<std::size_t> invariants;
  // Whether the body of a Scan makes all states is only seen when it runs.
  if (states.count == 0 || body.outputs.size() < states.first_output + states.count) return invariants;
  const auto has_grid = [](const Graph &of, ValueId v) { return v != kNoValue && of.value(v).quantizer; };
  const std::vector<ValueId> origins = origins_of(body);
  std::map<ValueId, int> times;
  for (const ValueId v : origins) ++times[v];
  for (std::size_t s = 0; s < states.count; ++s) {
    const ValueId state = body.inputs[states.first_input + s], given = node.inputs[states.first_input + s];
    const ValueId last = s < node.outputs.size() ? node.outputs[s] : kNoValue;
    if (origins[states.first_output + s] == state && times[state] == 1 && given != kNoValue && !has_grid(g, given) &&
        !has_grid(body, state) && !has_grid(g, last))
      invariants.push_back(s);
  }
  return invariants;
}

template <class T>
void remove(std::vector<T> &list, std::size_t i) {
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
}

class Captures {
 public:
  explicit Captures(Graph &g) : g_(g) {
    for (const Node &node : g.nodes) names_.take(node.name);
  }

  void run() {
    for (Node &node : g_.nodes) {
      if (node.bodies.empty()) continue;
      const std::vector<std::size_t> invariants = invariants_of(g_, node);
      if (invariants.empty() && !captures_constants(node)) continue;
      std::vector<Graph> bodies;
      for (const auto &body : node.bodies) bodies.push_back(*body);
      const States states = states_of(node);
      for (std::size_t i = invariants.size(); i-- > 0;) capture(node, bodies[0], states, invariants[i]);
      settle_constants(node, bodies);
      for (std::size_t b = 0; b < bodies.size(); ++b)
        node.bodies[b] = std::make_shared<const Graph>(std::move(bodies[b]));
    }
    std::erase_if(g_.nodes, [](const Node &node) { return node.outputs.empty(); });
    if (identities_.empty()) return;
    g_.nodes.insert(g_.nodes.end(), identities_.begin(), identities_.end());
    sort_topologically(g_);
  }

 private:
  bool captures_constants(const Node &node) const {
    return std::any_of(node.inputs.end() - static_cast<std::ptrdiff_t>(node.captured), node.inputs.end(),
                       [&](ValueId v) { return g_.value(v).is_constant(); });
  }

  /// From now on the body reads what the first iteration was given.
  void capture(Node &node, Graph &body, const States &states, std::size_t s) {
    const ValueId given = node.inputs[states.first_input + s], state = body.inputs[states.first_input + s];
    remove(node.inputs, states.first_input + s);
    remove(body.inputs, states.first_input + s);
    remove(body.outputs, states.first_output + s);
    node.inputs.push_back(given);
    body.inputs.push_back(state);
    ++node.captured;
    if (s >= node.outputs.size()) return;
    const ValueId y = node.outputs[s];
    remove(node.outputs, s);
    if (y != kNoValue) identities_.push_back({names_.make(node.name), &ops::kIdentity, {}, {given}, {y}, {}});
  }

  /// Captured constants are constants of the bodies.
  void settle_constants(Node &node, std::vector<Graph> &bodies) const {
    const std::size_t own = node.inputs.size() - node.captured;
    for (std::size_t c = node.captured; c-- > 0;) {
      const Value &given = g_.value(node.inputs[own + c]);
      if (!given.is_constant()) continue;
      for (Graph &body : bodies) {
        const std::size_t at = body.inputs.size() - node.captured + c;
        Value &constant = body.value(body.inputs[at]);
        constant.constant = given.constant;
        constant.quantizer = given.quantizer;
        constant.dtype = given.dtype;
        constant.shape = given.shape;
        remove(body.inputs, at);
      }
      remove(node.inputs, own + c);
      --node.captured;
    }
  }

  Graph &g_;
  UniqueNames names_;
  std::vector<Node> identities_;
};

}  // namespace

void capture_invariants(Graph &g) {
  if (std::ranges::any_of(g.nodes, [](const Node &node) { return !node.bodies.empty(); })) Captures(g).run();
}

}  // namespace qtn::graph
