// SPDX-License-Identifier: Apache-2.0
#include "quant/search/sensitivity.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "graph/integer.hpp"
#include "graph/tables.hpp"
#include "quant/copies.hpp"
#include "quant/recover/walk.hpp"

namespace qtn::quant {
namespace {

using graph::Graph;
using graph::IntegerForm;

/// Whether a node rounds what it computes, or has weights that are rounded.
bool rounds(const Graph &quantized, const graph::Node &node) {
  const IntegerForm form = graph::integer_form(quantized, node);
  if (form != IntegerForm::none) return form != IntegerForm::move;
  return std::ranges::any_of(node.inputs, [&](graph::ValueId v) {
    return v != graph::kNoValue && quantized.value(v).is_constant() && quantized.value(v).quantizer;
  });
}

std::size_t at(graph::ValueId v) { return static_cast<std::size_t>(v); }

/// Constants in float again, except those that `stay`.
void restore_constants(Graph &g, const Graph &real, const std::vector<bool> &stay) {
  for (std::size_t n = 0; n < g.nodes.size(); ++n)
    for (std::size_t i = 0; i < g.nodes[n].inputs.size(); ++i) {
      const graph::ValueId v = g.nodes[n].inputs[i];
      if (v == graph::kNoValue || stay[at(v)] || !g.value(v).is_constant() || !g.value(v).quantizer) continue;
      g.value(v).constant = real.value(real.nodes[n].inputs[i]).constant;
      g.value(v).quantizer = nullptr;
    }
}

/// A copy of a value, on its grid.
graph::ValueId add_rounded(Graph &g, graph::ValueId v) {
  graph::Value copy = g.value(v);
  copy.name = g.names.make(g.values, copy.name + "_rounded");
  const std::string name = copy.name;
  const graph::ValueId made = g.add_value(std::move(copy));
  g.nodes.push_back(copy_node(name, v, made));
  return made;
}

/// Both forms of a network, node beside node.
struct Pair {
  Pair(const Graph &float_graph, const Graph &quantized_graph)
      : real(float_graph),
        quantized(quantized_graph),
        real_uses(real),
        uses(quantized),
        real_engine(real),
        engine(quantized) {
    if (real.nodes.size() != quantized.nodes.size())
      fail(QTN_EINTERNAL, "sensitivity: ", real.nodes.size(), " nodes became ", quantized.nodes.size());
    costs.resize(real.nodes.size(), false);
    for (const std::size_t n : nodes_that_round(quantized)) costs[n] = true;
  }

  std::size_t size() const { return costs.size(); }

  const Graph &real;
  const Graph &quantized;
  const graph::Uses real_uses, uses;
  NodeEngine real_engine, engine;
  std::vector<bool> costs;
};

std::vector<Tensor> outputs(const Graph &g, const Walk &walk) {
  std::vector<Tensor> tensors;
  for (const graph::ValueId v : g.outputs) tensors.push_back(as_float32(walk.at(v)));
  return tensors;
}

void add(Noise &noise, const std::vector<Tensor> &want, const std::vector<Tensor> &got) {
  for (std::size_t i = 0; i < want.size(); ++i)
    if (want[i].dtype() == QTN_FLOAT32) noise.add(want[i], got[i]);
}

std::vector<Tensor> float_outputs(Pair &pair, const std::vector<Tensor> &inputs) {
  Walk walk(pair.real_engine, pair.real_uses, inputs);
  for (std::size_t n = 0; n < pair.size(); ++n) walk.step(n);
  return outputs(pair.real, walk);
}

/// One sample: the float walk is forked in front of each node, which then runs on its grids.
void measure(Pair &pair, const std::vector<Tensor> &inputs, std::vector<Sensitivity> &all) {
  const std::vector<Tensor> want = float_outputs(pair, inputs);
  Walk real(pair.real_engine, pair.real_uses, inputs), quantized(pair.engine, pair.uses, inputs);
  auto sensitivity = all.begin();
  for (std::size_t n = 0; n < pair.size(); ++n) {
    if (pair.costs[n]) {
      Walk fork = real;
      fork.step_as(n, pair.engine);
      for (std::size_t m = n + 1; m < pair.size(); ++m) fork.step(m);
      add(sensitivity->alone, want, outputs(pair.real, fork));
    }
    real.step(n);
    quantized.step(n);
    if (pair.costs[n])
      sensitivity++->accumulated.add(real.at(pair.real.nodes[n].outputs[0]),
                                     quantized.at(pair.quantized.nodes[n].outputs[0]));
  }
}

}  // namespace

std::vector<std::size_t> nodes_that_round(const Graph &quantized) {
  const graph::Tables tables{quantized};
  std::vector<std::size_t> nodes;
  for (std::size_t n = 0; n < quantized.nodes.size(); ++n)
    if (rounds(quantized, quantized.nodes[n]) || tables.ending_at(n)) nodes.push_back(n);
  return nodes;
}

std::vector<Sensitivity> measure_sensitivity(const Graph &real, const Graph &quantized, const Samples &samples) {
  Pair pair(real, quantized);
  std::vector<Sensitivity> all;
  for (std::size_t n = 0; n < pair.size(); ++n)
    if (pair.costs[n]) all.push_back({n, {}, {}});
  for (std::size_t s = 0; s < samples.count; ++s) measure(pair, samples.read(s), all);
  return all;
}

graph::Graph quantized_only(const Graph &real, const Graph &quantized, std::span<const std::size_t> nodes) {
  Graph g = quantized;
  std::vector<bool> theirs(g.values.size(), false), chosen(g.nodes.size(), false);
  for (const std::size_t n : nodes) {
    chosen[n] = true;
    for (const graph::ValueId v : g.nodes[n].outputs) theirs[at(v)] = v != graph::kNoValue;
    for (const graph::ValueId v : g.nodes[n].inputs)
      if (v != graph::kNoValue && g.value(v).is_constant()) theirs[at(v)] = true;
  }
  restore_constants(g, real, theirs);
  std::map<graph::ValueId, graph::ValueId> rounded;
  const std::size_t count = g.nodes.size();
  for (std::size_t n = 0; n < count; ++n) {
    if (!chosen[n]) continue;
    for (std::size_t i = 0; i < g.nodes[n].inputs.size(); ++i) {
      const graph::ValueId v = g.nodes[n].inputs[i];
      if (v == graph::kNoValue || theirs[at(v)] || !g.value(v).quantizer) continue;
      if (!rounded.contains(v)) rounded[v] = add_rounded(g, v);
      g.nodes[n].inputs[i] = rounded[v];
    }
  }
  for (std::size_t v = 0; v < theirs.size(); ++v)
    if (!theirs[v]) g.values[v].quantizer = nullptr;
  graph::sort_topologically(g);
  return g;
}

}  // namespace qtn::quant
