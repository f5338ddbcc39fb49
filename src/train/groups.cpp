// SPDX-License-Identifier: Apache-2.0
#include "train/groups.hpp"

#include <algorithm>
#include <set>

#include "train/options.hpp"

namespace qtn::train {
namespace {

using quant::Selector;

constexpr AttrSpec kKeys[] = {
    {"lr_factor", AttrSpec::kFloat}, {"weight_decay", AttrSpec::kFloat}, {"frozen", AttrSpec::kInt}};

void apply(Parameter &p, const Attrs &settings) {
  p.rate_factor =
      static_cast<float>(not_negative(settings, "lr_factor", static_cast<double>(p.rate_factor), "trainer"));
  if (settings.has("weight_decay")) p.weight_decay = not_negative(settings, "weight_decay", 0, "trainer");
  p.frozen = flag(settings, "frozen", p.frozen, "trainer");
}

void of_node(std::set<std::size_t> &to, const Network &network, std::size_t n) {
  for (const graph::ValueId v : network.graph.nodes[n].inputs)
    if (const auto found = network.parameter_of.find(v); found != network.parameter_of.end()) to.insert(found->second);
  if (!network.quantization) return;
  if (const auto grid = network.quantization->weights.find(n); grid != network.quantization->weights.end())
    for (const std::size_t i : grid->second.parameters) to.insert(network.first_of_grids + i);
}

void of_tensor(std::set<std::size_t> &to, const Network &network, std::string_view name) {
  if (!network.quantization) return;
  for (const auto &[v, grid] : network.quantization->activation_of)
    if (network.graph.value(v).name == name || network.quantization->activations[grid].name() == name)
      for (const std::size_t i : network.quantization->of_activation[grid]) to.insert(network.first_of_grids + i);
}

std::vector<std::size_t> matched(const Selector &selector, const Network &network) {
  std::set<std::size_t> found;
  for (std::size_t i = 0; i < network.parameters.size(); ++i)
    if (selector.kind() == Selector::kAll || selector.matches_parameter(network.parameters[i].name)) found.insert(i);
  for (std::size_t n = 0; n < network.graph.nodes.size(); ++n)
    if (selector.matches(network.graph.nodes[n])) of_node(found, network, n);
  if (selector.kind() == Selector::kTensor) of_tensor(found, network, selector.pattern());
  return {found.begin(), found.end()};
}

}  // namespace

void Groups::set(const std::string &selector, const Attrs &settings, Network &network) {
  settings.check(kKeys, "trainer: of a group");
  Rule rule{Selector(selector, "trainer", Selector::kParameter), settings, {}};
  rule.parameters = matched(rule.selector, network);
  if (rule.parameters.empty()) fail(QTN_EINVAL, "trainer: selector \"", selector, "\" matches no parameter");
  Parameter trial;
  apply(trial, settings);
  const auto after = std::upper_bound(rules_.begin(), rules_.end(), rule, [](const Rule &a, const Rule &b) {
    return a.selector.kind() < b.selector.kind();
  });
  rules_.insert(after, std::move(rule));
  for (const Rule &each : rules_)
    for (const std::size_t i : each.parameters) apply(network.parameters[i], each.settings);
}

}  // namespace qtn::train
