// SPDX-License-Identifier: Apache-2.0
#include "quant/search/sensitivity.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "graph/integer.hpp"
#include "graph/tables.hpp"
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

/// Both forms of a network, node beside node.
struct Pair {
  Pair(const Graph &float_graph, const Graph &quantized)
      : real(float_graph), floats(with_float_constants(quantized)), real_uses(real), uses(floats) {
    if (real.nodes.size() != floats.nodes.size())
      fail(QTN_EINTERNAL, "sensitivity: ", real.nodes.size(), " nodes became ", floats.nodes.size());
    for (const graph::Node &node : quantized.nodes) costs.push_back(rounds(quantized, node));
    const graph::Tables tables{quantized};
    for (std::size_t n = 0; n < costs.size(); ++n) costs[n] = costs[n] || tables.ending_at(n);
  }

  std::size_t size() const { return costs.size(); }

  const Graph &real;
  const Graph floats;
  const graph::Uses real_uses, uses;
  std::vector<bool> costs;
};

std::vector<Tensor> outputs(const Graph &g, const Walk &walk) {
  std::vector<Tensor> tensors;
  for (const graph::ValueId v : g.outputs) tensors.push_back(walk.at(v));
  return tensors;
}

void add(Noise &noise, const std::vector<Tensor> &want, const std::vector<Tensor> &got) {
  for (std::size_t i = 0; i < want.size(); ++i)
    if (want[i].dtype() == QTN_FLOAT32) noise.add(want[i], got[i]);
}

std::vector<Tensor> float_outputs(const Pair &pair, const std::vector<Tensor> &inputs) {
  Walk walk(pair.real, pair.real_uses, inputs);
  for (std::size_t n = 0; n < pair.size(); ++n) walk.step(n);
  return outputs(pair.real, walk);
}

/// One sample: the float walk is forked in front of each node, which then runs on its grids.
void measure(const Pair &pair, const std::vector<Tensor> &inputs, std::vector<Sensitivity> &all) {
  const std::vector<Tensor> want = float_outputs(pair, inputs);
  Walk real(pair.real, pair.real_uses, inputs), quantized(pair.floats, pair.uses, inputs);
  auto sensitivity = all.begin();
  for (std::size_t n = 0; n < pair.size(); ++n) {
    if (pair.costs[n]) {
      Walk fork = real;
      fork.step_as(n, pair.floats);
      for (std::size_t m = n + 1; m < pair.size(); ++m) fork.step(m);
      add(sensitivity->alone, want, outputs(pair.real, fork));
    }
    real.step(n);
    quantized.step(n);
    if (pair.costs[n])
      sensitivity++->accumulated.add(real.at(pair.real.nodes[n].outputs[0]),
                                     quantized.at(pair.floats.nodes[n].outputs[0]));
  }
}

}  // namespace

std::vector<Sensitivity> measure_sensitivity(const Graph &real, const Graph &quantized, const Samples &samples) {
  const Pair pair(real, quantized);
  std::vector<Sensitivity> all;
  for (std::size_t n = 0; n < pair.size(); ++n)
    if (pair.costs[n]) all.push_back({n, {}, {}});
  for (std::size_t s = 0; s < samples.count; ++s) measure(pair, samples.read(s), all);
  return all;
}

Noise noise_without(const Graph &real, const Graph &quantized, const Samples &samples,
                    std::span<const std::size_t> in_float) {
  const Pair pair(real, quantized);
  Noise noise;
  for (std::size_t s = 0; s < samples.count; ++s) {
    const std::vector<Tensor> inputs = samples.read(s);
    Walk walk(pair.real, pair.real_uses, inputs);
    for (std::size_t n = 0; n < pair.size(); ++n) {
      const bool stays = !pair.costs[n] || std::find(in_float.begin(), in_float.end(), n) != in_float.end();
      stays ? walk.step(n) : walk.step_as(n, pair.floats);
    }
    add(noise, float_outputs(pair, inputs), outputs(pair.real, walk));
  }
  return noise;
}

}  // namespace qtn::quant
