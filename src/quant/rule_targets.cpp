// SPDX-License-Identifier: Apache-2.0
#include "quant/rule_targets.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "core/dtype.hpp"
#include "graph/facts.hpp"
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
      missing(rule);
}

/// What the optimized graph computes, and of it the names of activations.
struct Computed {
  explicit Computed(const Graph &graph) : g(graph), facts(graph) {
    for (std::size_t v = 0; v < g.values.size(); ++v) {
      const auto id = static_cast<graph::ValueId>(v);
      const bool is_input = std::find(g.inputs.begin(), g.inputs.end(), id) != g.inputs.end();
      if (is_activation(g, facts, id) && (is_input || facts.uses.producer[v] >= 0))
        activations.push_back(g.values[v].name);
    }
  }
  bool is_computed(std::string_view name) const {
    return std::find(activations.begin(), activations.end(), name) != activations.end();
  }

  const Graph &g;
  const graph::Facts facts;
  std::vector<std::string_view> activations;
};

std::ptrdiff_t value_named(const Graph &g, std::string_view name) {
  const auto at =
      std::find_if(g.values.begin(), g.values.end(), [&](const graph::Value &value) { return value.name == name; });
  return at == g.values.end() ? -1 : at - g.values.begin();
}

/// Why there are no floats of this name to be made integers: the end of a message.
std::string why_not(std::string_view name, const Graph &model, const Computed &computed) {
  const std::ptrdiff_t v = value_named(model, name);
  if (v < 0) return cat("no activation has this name", graph::nearest(name, computed.activations));
  if (model.values[static_cast<std::size_t>(v)].is_constant())
    return "this is a constant; weights become integers with the node that reads them";
  const graph::Facts facts(model);
  const auto index = static_cast<std::size_t>(v);
  if (!facts.is_float(static_cast<graph::ValueId>(v)))
    return cat("this tensor holds ", dtype_name(facts.dtype[index]), ", only activations of float32 become integers");
  // What read it took it in, or else what made it went with it.
  std::vector<std::int32_t> around = facts.uses.consumers[index];
  if (facts.uses.producer[index] >= 0) around.push_back(facts.uses.producer[index]);
  const std::vector<Fusion> fused = fusions(model, computed.g);
  for (const std::int32_t n : around)
    for (const Fusion &fusion : fused)
      if (fusion.node == model.nodes[static_cast<std::size_t>(n)].name)
        return cat("no node makes this activation any more: \"", fusion.node, "\" became part of \"", fusion.into,
                   "\"");
  return cat("no node makes this activation any more", graph::nearest(name, computed.activations));
}

}  // namespace

void require_nodes(const Config &config, const Graph &model, const Graph &g) {
  std::vector<std::string_view> names;
  for (const Node &node : g.nodes) names.push_back(node.name);
  each_missing(config, Selector::kNode, names, [&](const Rule &rule) {
    const Selector &selector = rule.selector;
    for (const Fusion &fusion : fusions(model, g))
      if (fusion.node == selector.pattern())
        fail(QTN_EINVAL, "config: selector \"", selector.text(), "\": this node became part of \"", fusion.into, "\"");
    fail(QTN_EINVAL, "config: selector \"", selector.text(), "\": no node has this name",
         graph::nearest(selector.pattern(), names));
  });
}

void require_tensors(const Config &config, const Graph &model, const Graph &g,
                     std::span<const std::string_view> quantized) {
  each_missing(config, Selector::kTensor, quantized, [&](const Rule &rule) {
    const Selector &selector = rule.selector;
    const Computed computed(g);
    const bool is_computed = computed.is_computed(selector.pattern());
    const bool says_whether = rule.settings->has("quantize");
    if (is_computed && says_whether && rule.settings->size() == 1) return;
    if (says_whether && !is_computed)
      fail(QTN_EINVAL, "config: selector \"", selector.text(),
           "\": \"quantize\": ", why_not(selector.pattern(), model, computed));
    fail(QTN_EINVAL, "config: selector \"", selector.text(), "\": no activation of this name becomes integers",
         is_computed ? "; this one does where \"quantize\" is 1" : graph::nearest(selector.pattern(), quantized));
  });
}

void require_outputs(const Config &config, const Graph &g) {
  const graph::Facts facts(g);
  const auto is_real_output = [&](graph::ValueId v) {
    return is_activation(g, facts, v) && facts.uses.is_output[static_cast<std::size_t>(v)];
  };
  for (const Rule &rule : config.rules()) {
    if (rule.selector.kind() != Selector::kNode || !rule.settings || rule.settings->get_int("quantize_outputs", 0) == 0)
      continue;
    for (const Node &node : g.nodes)
      if (rule.selector.matches(node) && std::none_of(node.outputs.begin(), node.outputs.end(), is_real_output))
        fail(QTN_EINVAL, "config: selector \"", rule.selector.text(),
             "\": \"quantize_outputs\": this node makes no output of the model that holds float32; \"quantize\" of "
             "\"tensor:",
             node.outputs.empty() ? std::string_view() : std::string_view(g.value(node.outputs[0]).name),
             "\" is for other activations");
  }
}

}  // namespace qtn::quant
