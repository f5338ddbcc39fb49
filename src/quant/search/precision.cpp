// SPDX-License-Identifier: Apache-2.0
#include "quant/search/precision.hpp"

#include <algorithm>

#include "quant/search/sensitivity.hpp"

namespace qtn::quant {
namespace {

using Layers = std::vector<FallenLayer>;

Layers by_sensitivity(const PreparedModel &prepared, const graph::Graph &quantized, const Samples &samples) {
  std::vector<Sensitivity> sensitivity = measure_sensitivity(prepared.graph, quantized, samples);
  std::stable_sort(sensitivity.begin(), sensitivity.end(),
                   [](const Sensitivity &a, const Sensitivity &b) { return a.alone.relative() > b.alone.relative(); });
  Layers layers;
  for (const Sensitivity &d : sensitivity) layers.push_back({quantized.nodes[d.node].name, d.alone.sqnr_db()});
  return layers;
}

Layers first(const Layers &layers, std::size_t count) {
  return {layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(count)};
}

template <class Holds>
Layers fewest(const Layers &worst, const Holds &holds) {
  std::size_t low = 1, high = worst.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (holds(first(worst, middle)))
      high = middle;
    else
      low = middle + 1;
  }
  Layers kept = first(worst, high);
  for (std::size_t i = kept.size(); i-- > 0;) {
    Layers fewer = kept;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (holds(fewer)) kept = fewer;
  }
  return kept;
}

}  // namespace

std::vector<FallenLayer> reach(PreparedModel &prepared, const Goal &goal, const Samples &samples,
                               const FallBack &fall_back) {
  const graph::Graph quantized = convert(prepared, nullptr);
  if (goal.met_by(quantized)) return {};
  const auto fallen = [&](const Layers &layers) {
    std::vector<std::string> names;
    for (const FallenLayer &layer : layers) names.push_back(layer.node);
    return fall_back(names);
  };
  const auto holds = [&](const Layers &layers) { return goal.met_by(convert(fallen(layers), nullptr)); };

  const Layers worst = by_sensitivity(prepared, quantized, samples);
  const Layers found = holds(worst) ? fewest(worst, holds) : worst;
  prepared = fallen(found);
  return found;
}

}  // namespace qtn::quant
