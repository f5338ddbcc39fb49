// SPDX-License-Identifier: Apache-2.0
#include "quant/named.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "quant/outcome.hpp"

namespace qtn::quant {
namespace {

using graph::Graph;
using graph::Node;

/// Characters to insert, remove or replace (Levenshtein).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j)
      diagonal = std::exchange(row[j + 1], std::min({row[j] + 1, row[j + 1] + 1, diagonal + (a[i] != b[j])}));
  }
  return row.back();
}

/// The end of a message; empty where there are no names.
std::string nearest(std::string_view name, std::span<const std::string_view> names) {
  std::vector<std::pair<std::size_t, std::string_view>> by_distance;
  for (const std::string_view n : names) by_distance.emplace_back(distance(name, n), n);
  std::sort(by_distance.begin(), by_distance.end());
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, by_distance.size()); ++i)
    text += cat(i == 0 ? "; nearest are: " : " ", by_distance[i].second);
  return text;
}

template <class F>
void each_missing(const Config &config, Selector::Kind kind, std::span<const std::string_view> names, F missing) {
  for (const Rule &rule : config.rules())
    if (rule.selector.kind() == kind && std::find(names.begin(), names.end(), rule.selector.pattern()) == names.end())
      missing(rule.selector);
}

}  // namespace

void require_nodes(const Config &config, const Graph &model, const Graph &g) {
  std::vector<std::string_view> names;
  for (const Node &node : g.nodes) names.push_back(node.name);
  each_missing(config, Selector::kNode, names, [&](const Selector &selector) {
    for (const Fusion &fusion : fusions(model, g))
      if (fusion.node == selector.pattern())
        fail(QTN_EINVAL, "config: selector \"", selector.text(), "\": this node became part of \"", fusion.into, "\"");
    fail(QTN_EINVAL, "config: selector \"", selector.text(), "\": no node has this name",
         nearest(selector.pattern(), names));
  });
}

void require_tensors(const Config &config, std::span<const std::string_view> quantized) {
  each_missing(config, Selector::kTensor, quantized, [&](const Selector &selector) {
    fail(QTN_EINVAL, "config: selector \"", selector.text(), "\": no activation of this name becomes integers",
         nearest(selector.pattern(), quantized));
  });
}

}  // namespace qtn::quant
