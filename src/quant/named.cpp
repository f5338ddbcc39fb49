// SPDX-License-Identifier: Apache-2.0
#include "quant/named.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "graph/nearest.hpp"
#include "quant/outcome.hpp"

namespace qtn::quant {
namespace {

using graph::Graph;
using graph::Node;

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
         graph::nearest(selector.pattern(), names));
  });
}

void require_tensors(const Config &config, std::span<const std::string_view> quantized) {
  each_missing(config, Selector::kTensor, quantized, [&](const Selector &selector) {
    fail(QTN_EINVAL, "config: selector \"", selector.text(), "\": no activation of this name becomes integers",
         graph::nearest(selector.pattern(), quantized));
  });
}

}  // namespace qtn::quant
