// SPDX-License-Identifier: Apache-2.0
#include "quant/search/observers.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "quant/recover/walk.hpp"
#include "quant/search/noise.hpp"

namespace qtn::quant {
namespace {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

/// Of equals the first is taken.
constexpr const char *kKinds[] = {"minmax", "histogram", "mse", "percentile", "entropy"};
constexpr std::size_t kCount = std::size(kKinds);

/// A copy whose observers are all of one kind.
Prepared with_observers(const Prepared &p, const char *kind) {
  Prepared copy{p.graph, p.config, p.placement, {}, 0, {}, p.model};
  for (const Group &group : p.placement.groups)
    copy.observers.push_back(group.fixed ? nullptr : make_observer(kind, group.settings.activation));
  return copy;
}

class Probe {
 public:
  explicit Probe(const Prepared &p, std::vector<std::vector<QuantizerPtr>> grids)
      : p_(p),
        uses_(p.graph),
        grids_(std::move(grids)),
        losses_(p.placement.groups.size(), std::vector<Noise>(kCount)) {}

  void see(const std::vector<Tensor> &inputs) {
    Walk walk(p_.graph, uses_, inputs);
    for (std::size_t n = 0; n < p_.graph.nodes.size(); ++n) {
      if (p_.placement.nodes[n].integer) try_operands(walk, p_.graph.nodes[n]);
      walk.step(n);
    }
  }

  double loss(std::size_t group, std::size_t candidate) const { return losses_[group][candidate].relative(); }

 private:
  void try_operands(const Walk &walk, const Node &node) {
    std::vector<const Tensor *> operands;
    for (const ValueId v : node.inputs) operands.push_back(v == kNoValue ? nullptr : &walk.at(v));
    const auto run = [&] { return ops::run_op(*node.op, {node.attrs, operands, node.outputs.size()})[0]; };
    std::optional<Tensor> want;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const ValueId v = node.inputs[i];
      const std::int32_t group = v == kNoValue ? -1 : p_.placement.group[static_cast<std::size_t>(v)];
      if (group < 0 || p_.placement.groups[static_cast<std::size_t>(group)].fixed) continue;
      if (!want) want = run();
      const Tensor exact = *operands[i];
      for (std::size_t c = 0; c < kCount; ++c) {
        const Tensor coarse = dequantize(quantize(exact, grids_[c][static_cast<std::size_t>(group)]));
        operands[i] = &coarse;
        losses_[static_cast<std::size_t>(group)][c].add(*want, run());
      }
      operands[i] = &walk.at(v);
    }
  }

  const Prepared &p_;
  const graph::Uses uses_;
  const std::vector<std::vector<QuantizerPtr>> grids_;
  std::vector<std::vector<Noise>> losses_;
};

}  // namespace

std::vector<ObserverChoice> choose_observers(Prepared &prepared, const Samples &samples, std::size_t probes) {
  std::vector<Prepared> of_kind;
  for (const char *kind : kKinds) of_kind.push_back(with_observers(prepared, kind));
  of_kind[0].distributions = std::move(prepared.distributions);
  for (std::size_t s = 0; s < samples.count; ++s) {
    const std::vector<Tensor> inputs = samples.read(s);
    std::vector<const Tensor *> pointers;
    for (const Tensor &t : inputs) pointers.push_back(&t);
    for (Prepared &p : of_kind) calibrate(p, pointers);
  }
  const std::size_t groups = prepared.placement.groups.size();
  std::vector<std::vector<QuantizerPtr>> grids;
  for (const Prepared &p : of_kind) {
    grids.emplace_back();
    for (const auto &observer : p.observers) grids.back().push_back(observer ? observer->quantizer() : nullptr);
  }
  Probe probe(prepared, std::move(grids));
  const std::size_t count = std::min(probes, samples.count);
  for (std::size_t i = 0; i < count; ++i) probe.see(samples.read(i * samples.count / count));

  std::vector<ObserverChoice> choices;
  for (std::size_t g = 0; g < groups; ++g) {
    const Group &group = prepared.placement.groups[g];
    if (group.fixed) continue;
    ObserverChoice choice{prepared.graph.value(group.members[0]).name, {}, 0};
    for (std::size_t c = 0; c < kCount; ++c) {
      choice.candidates.push_back({kKinds[c], probe.loss(g, c)});
      if (probe.loss(g, c) < choice.candidates[choice.chosen].loss) choice.chosen = c;
    }
    prepared.observers[g] = of_kind[choice.chosen].observers[g]->clone();
    choices.push_back(std::move(choice));
  }
  prepared.distributions = std::move(of_kind[0].distributions);
  prepared.samples = samples.count;
  return choices;
}

}  // namespace qtn::quant
