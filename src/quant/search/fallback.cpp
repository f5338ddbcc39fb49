// SPDX-License-Identifier: Apache-2.0
#include "quant/search/fallback.hpp"

#include <algorithm>
#include <iterator>

#include "quant/calibrate.hpp"

namespace qtn::quant {
namespace {

using graph::ValueId;

/// What was observed of the group, for one that takes over some of its members. Members that hold elements of constants
/// were not observed, and the node that moves the constants may be in float now.
std::unique_ptr<Observer> observer_for(const graph::Graph &g, const Group &group, const Group &old,
                                       const Observer &observed) {
  std::vector<ValueId> lost;
  std::ranges::copy_if(old.constants, std::back_inserter(lost),
                       [&](ValueId v) { return std::ranges::find(group.constants, v) == group.constants.end(); });
  return with_constants(g, lost, observed);
}

PreparedModel left_in_float(const PreparedModel &prepared, const std::vector<std::string> &nodes) {
  PreparedModel p{
      .graph = prepared.graph, .config = prepared.config, .samples = prepared.samples, .model = prepared.model};
  for (const std::string &node : nodes) p.config.set("node:" + node, nullptr);
  p.placement = place(p.graph, p.config);
  for (const Group &group : p.placement.groups) {
    const auto old = static_cast<std::size_t>(prepared.placement.group[static_cast<std::size_t>(group.members[0])]);
    const auto &observer = prepared.observers[old];
    p.observers.push_back(
        group.fixed || !observer ? nullptr : observer_for(p.graph, group, prepared.placement.groups[old], *observer));
    if (!prepared.distributions.empty()) p.distributions.push_back(prepared.distributions[old]);
  }
  return p;
}

/// Without observers. Groups stay what they are: which node asks for integers does not depend on how many bits they
/// have.
PreparedModel widened(const PreparedModel &prepared, const std::vector<bool> &groups) {
  PreparedModel p{.graph = prepared.graph,
                  .config = prepared.config,
                  .samples = prepared.samples,
                  .model = prepared.model,
                  .distributions = prepared.distributions};
  Attrs wide;
  wide.set("activation_dtype", "int16");
  for (std::size_t g = 0; g < groups.size(); ++g)
    if (groups[g]) p.config.set("tensor:" + p.graph.value(prepared.placement.groups[g].members[0]).name, &wide);
  p.placement = place(p.graph, p.config);
  return p;
}

std::vector<bool> groups_of(const PreparedModel &p, const std::vector<std::string> &nodes) {
  std::vector<bool> groups(p.placement.groups.size(), false);
  for (const graph::Node &node : p.graph.nodes) {
    if (std::find(nodes.begin(), nodes.end(), node.name) == nodes.end()) continue;
    for (const auto *values : {&node.inputs, &node.outputs})
      for (const ValueId v : *values)
        if (v != graph::kNoValue && p.placement.group[static_cast<std::size_t>(v)] >= 0)
          groups[static_cast<std::size_t>(p.placement.group[static_cast<std::size_t>(v)])] = true;
  }
  return groups;
}

std::vector<std::unique_ptr<Observer>> wide_observers(const PreparedModel &prepared, const Samples &samples) {
  PreparedModel all = widened(prepared, std::vector<bool>(prepared.placement.groups.size(), true));
  all.distributions.clear();
  all.observers = observers_like(prepared, all.placement);
  calibrate_all(all, samples);
  return std::move(all.observers);
}

}  // namespace

FallBack to_float(const PreparedModel &prepared) {
  return [&prepared](const std::vector<std::string> &nodes) { return left_in_float(prepared, nodes); };
}

FallBack to_int16(const PreparedModel &prepared, const Samples &samples) {
  const auto wide = std::make_shared<std::vector<std::unique_ptr<Observer>>>();
  return [&prepared, &samples, wide](const std::vector<std::string> &nodes) {
    if (wide->empty()) *wide = wide_observers(prepared, samples);
    const std::vector<bool> groups = groups_of(prepared, nodes);
    PreparedModel p = widened(prepared, groups);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const auto &observer = groups[g] ? (*wide)[g] : prepared.observers[g];
      p.observers.push_back(observer ? observer->clone() : nullptr);
    }
    return p;
  };
}

}  // namespace qtn::quant
