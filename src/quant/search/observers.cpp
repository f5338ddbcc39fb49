// SPDX-License-Identifier: Apache-2.0
#include "quant/search/observers.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "quant/calibrate.hpp"
#include "quant/prepare.hpp"
#include "quant/recover/walk.hpp"
#include "quant/search/noise.hpp"

namespace qtn::quant {
namespace {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

/// The first of equal ones is taken.
constexpr const char *kKinds[] = {"minmax", "histogram", "mse", "percentile", "entropy"};
constexpr std::size_t kCount = std::size(kKinds);

/// One of each kind for each group that is observed, nullptr of kinds that do not take its settings (so many bins); none
/// for others.
using Observers = std::vector<std::vector<std::unique_ptr<Observer>>>;

std::unique_ptr<Observer> observer_of(const char *kind, const Attrs &settings) {
  try {
    return make_observer(kind, settings);
  } catch (const Error &e) {
    if (e.status() != QTN_EINVAL) throw;
    return nullptr;
  }
}

Observers observed_by_all(PreparedModel &p, const Samples &samples) {
  Observers observers(p.placement.groups.size());
  for (std::size_t g = 0; g < observers.size(); ++g)
    if (const Group &group = p.placement.groups[g]; !group.fixed)
      for (const char *kind : kKinds) observers[g].push_back(observer_of(kind, group.settings.activation));
  for (std::size_t s = 0; s < samples.count; ++s, ++p.samples) {
    const std::vector<Tensor> inputs = samples.read(s);
    std::vector<const Tensor *> pointers;
    for (const Tensor &t : inputs) pointers.push_back(&t);
    show(p, pointers, samples.number(s), [&](std::size_t group, const Tensor &t) {
      for (const auto &observer : observers[group])
        if (observer) observer->observe_finite(t);
      if (!p.distributions.empty()) p.distributions[group].add(t);
    });
  }
  return observers;
}

class Probe {
 public:
  Probe(const PreparedModel &p, const Observers &observers)
      : p_(p),
        uses_(p.graph),
        engine_(p.graph),
        grids_(observers.size()),
        losses_(observers.size(), std::vector<Noise>(kCount)) {
    for (std::size_t g = 0; g < observers.size(); ++g)
      for (const auto &observer : observers[g])
        grids_[g].push_back(observer ? observed_grid(p.graph, p.placement.groups[g], *observer) : nullptr);
  }

  void see(const std::vector<Tensor> &inputs) {
    Walk walk(engine_, uses_, inputs);
    for (std::size_t n = 0; n < p_.graph.nodes.size(); ++n) {
      if (p_.placement.nodes[n].integer) try_operands(walk, n);
      walk.step(n);
    }
  }

  double loss(std::size_t group, std::size_t candidate) const { return losses_[group][candidate].relative(); }

 private:
  void try_operands(const Walk &walk, std::size_t n) {
    const Node &node = p_.graph.nodes[n];
    std::vector<const Tensor *> operands;
    for (const ValueId v : node.inputs) operands.push_back(v == kNoValue ? nullptr : &walk.at(v));
    const auto run = [&] { return engine_.run(n, operands)[0]; };
    std::optional<Tensor> want;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const ValueId v = node.inputs[i];
      const std::int32_t group = v == kNoValue ? -1 : p_.placement.group[static_cast<std::size_t>(v)];
      if (group < 0 || p_.placement.groups[static_cast<std::size_t>(group)].fixed) continue;
      if (!want) want = run();
      const Tensor exact = *operands[i];
      for (std::size_t c = 0; c < kCount; ++c) {
        const QuantizerPtr &grid = grids_[static_cast<std::size_t>(group)][c];
        if (!grid) continue;
        const Tensor coarse = dequantize(quantize(exact, grid));
        operands[i] = &coarse;
        losses_[static_cast<std::size_t>(group)][c].add(*want, run());
      }
      operands[i] = &walk.at(v);
    }
  }

  const PreparedModel &p_;
  const graph::Uses uses_;
  NodeEngine engine_;
  std::vector<std::vector<QuantizerPtr>> grids_;
  std::vector<std::vector<Noise>> losses_;
};

}  // namespace

std::vector<ObserverChoice> choose_observers(PreparedModel &prepared, const Samples &samples, const Samples &probes) {
  Observers observers = observed_by_all(prepared, samples);
  Probe probe(prepared, observers);
  for (std::size_t i = 0; i < probes.count; ++i) probe.see(probes.read(i));

  std::vector<ObserverChoice> choices;
  for (std::size_t g = 0; g < observers.size(); ++g) {
    const Group &group = prepared.placement.groups[g];
    if (group.fixed) continue;
    ObserverChoice choice{prepared.graph.value(group.members[0]).name, {}, 0};
    std::size_t chosen = 0;  // minmax, which takes all settings
    for (std::size_t c = 0; c < kCount; ++c) {
      if (!observers[g][c]) continue;
      if (probe.loss(g, c) < probe.loss(g, chosen)) {
        chosen = c;
        choice.chosen = choice.candidates.size();
      }
      choice.candidates.push_back({kKinds[c], probe.loss(g, c)});
    }
    prepared.observers[g] = std::move(observers[g][chosen]);
    choices.push_back(std::move(choice));
  }
  return choices;
}

}  // namespace qtn::quant
