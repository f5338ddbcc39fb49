// SPDX-License-Identifier: Apache-2.0
#include "quant/search/precision.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "quant/search/damage.hpp"
#include "runtime/session.hpp"

namespace qtn::quant {
namespace {

using graph::Graph;

double sqnr_of(const Prepared &p, const Samples &samples) { return sqnr_db(p.graph, convert(p, nullptr), samples); }

using Layers = std::vector<Precision::Layer>;

std::vector<std::string> names_of(const Layers &layers) {
  std::vector<std::string> names;
  for (const Precision::Layer &layer : layers) names.push_back(layer.node);
  return names;
}

class Search {
 public:
  Search(const Prepared &p, const Samples &samples, double target) : p_(p), samples_(samples), target_(target) {
    const Graph quantized = convert(p, nullptr);
    std::vector<Damage> damage = measure_damage(p.graph, quantized, samples);
    std::stable_sort(damage.begin(), damage.end(),
                     [](const Damage &a, const Damage &b) { return a.alone.relative() > b.alone.relative(); });
    for (const Damage &d : damage) worst_.push_back({quantized.nodes[d.node].name, d.alone.sqnr_db()});
  }

  Layers run() const {
    std::size_t low = 0, high = worst_.size();
    if (!holds(first(high))) fail(QTN_EUNSUPPORTED, "auto: no choice of layers reaches ", target_, " dB");
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (holds(first(middle)))
        high = middle;
      else
        low = middle + 1;
    }
    Layers kept = first(high);
    for (std::size_t i = kept.size(); i-- > 0;) {
      Layers fewer = kept;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (holds(fewer)) kept = fewer;
    }
    return kept;
  }

 private:
  Layers first(std::size_t count) const {
    return {worst_.begin(), worst_.begin() + static_cast<std::ptrdiff_t>(count)};
  }
  bool holds(const Layers &in_float) const {
    return sqnr_of(leave_in_float(p_, names_of(in_float)), samples_) >= target_;
  }

  const Prepared &p_;
  const Samples &samples_;
  const double target_;
  Layers worst_;
};

}  // namespace

double sqnr_db(const Graph &real, const Graph &quantized, const Samples &samples) {
  const runtime::Session exact(real, {}), coarse(quantized, {});
  Noise noise;
  for (std::size_t s = 0; s < samples.count; ++s) {
    const std::vector<Tensor> inputs = samples.read(s);
    std::vector<const Tensor *> pointers;
    for (const Tensor &x : inputs) pointers.push_back(&x);
    const std::vector<Tensor> want = exact.run(pointers), got = coarse.run(pointers);
    for (std::size_t i = 0; i < want.size(); ++i)
      if (want[i].dtype() == QTN_FLOAT32) noise.add(want[i], got[i]);
  }
  return noise.sqnr_db();
}

Prepared leave_in_float(const Prepared &prepared, const std::vector<std::string> &nodes) {
  Prepared p{prepared.graph, prepared.config, {}, {}, prepared.samples, {}, prepared.model};
  for (const std::string &node : nodes) p.config.set("node:" + node, nullptr);
  p.placement = place(p.graph, p.config);
  for (const Group &group : p.placement.groups) {
    const std::int32_t old = prepared.placement.group[static_cast<std::size_t>(group.members[0])];
    const auto &observer = prepared.observers[static_cast<std::size_t>(old)];
    p.observers.push_back(group.fixed || !observer ? nullptr : observer->clone());
    if (!prepared.distributions.empty())
      p.distributions.push_back(prepared.distributions[static_cast<std::size_t>(old)]);
  }
  return p;
}

Precision reach(Prepared &prepared, const Samples &samples, double target_db) {
  Precision found;
  if (sqnr_of(prepared, samples) < target_db) {
    found.in_float = Search(prepared, samples, target_db).run();
    prepared = leave_in_float(prepared, names_of(found.in_float));
  }
  found.sqnr_db = sqnr_of(prepared, samples);
  return found;
}

}  // namespace qtn::quant
