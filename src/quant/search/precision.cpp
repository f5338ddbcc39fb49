// SPDX-License-Identifier: Apache-2.0
#include "quant/search/precision.hpp"

#include <algorithm>
#include <span>

#include "base/stable_order.hpp"
#include "quant/search/sensitivity.hpp"
#include "quant/search/work.hpp"

namespace qtn::quant {
namespace {

/// Networks that are run to rank the layers of one, and to give layers back.
constexpr std::size_t kRanked = 48, kGivenBack = 16;

/// Layers that follow one another in the network, what the outputs lose where only these are quantized, and what there is
/// to do in them, part of which is saved.
struct Stretch {
  std::size_t first, count;
  Noise alone;
  double work;

  double cost_of_work() const { return alone.relative() / work; }
};

class Search {
 public:
  Search(const PreparedModel &prepared, const graph::Graph &quantized, const Goal &goal, const FallBack &fall_back,
         const Progress &progress)
      : real_(prepared.graph),
        quantized_(quantized),
        nodes_(nodes_that_round(quantized)),
        work_(work_of_nodes(quantized, goal.sample())),
        goal_(goal),
        fall_back_(fall_back),
        progress_(progress) {}

  /// The stretches whose layers fall back, those that cost most for their work first.
  std::vector<Stretch> run() {
    const std::vector<Stretch> worst = ranked();
    return holds(worst) ? fewest(worst) : worst;
  }

  /// Those that cost most first.
  std::vector<FallenLayer> layers(const std::vector<Stretch> &stretches) const {
    std::vector<FallenLayer> layers;
    for (const Stretch &stretch : stretches)
      for (const std::size_t n : nodes_of(stretch))
        layers.push_back({quantized_.nodes[n].name, stretch.alone.sqnr_db()});
    return stably_sorted(std::move(layers),
                         [](const FallenLayer &a, const FallenLayer &b) { return a.alone_db < b.alone_db; });
  }

  PreparedModel without(const std::vector<Stretch> &stretches) const {
    std::vector<std::string> names;
    for (const FallenLayer &layer : layers(stretches)) names.push_back(layer.node);
    return fall_back_(names);
  }

 private:
  std::span<const std::size_t> nodes_of(const Stretch &stretch) const {
    return std::span(nodes_).subspan(stretch.first, stretch.count);
  }

  Stretch measured(std::size_t first, std::size_t count) {
    Stretch stretch{first, count, {}, 0};
    stretch.alone = goal_.noise_of(quantized_only(real_, quantized_, nodes_of(stretch)));
    for (const std::size_t n : nodes_of(stretch)) stretch.work += work_[n];
    ++ranked_;
    if (progress_) progress_("ranking layers", ranked_, std::min(nodes_.size(), kRanked));
    return stretch;
  }

  /// Each layer on its own, or where they are too many, ever shorter stretches of those that cost most.
  std::vector<Stretch> ranked() {
    const std::size_t all = nodes_.size(), parts = all <= kRanked ? all : kRanked / 2;
    std::vector<Stretch> stretches;
    for (std::size_t i = 0; i < parts; ++i) {
      const std::size_t first = i * all / parts;
      stretches.push_back(measured(first, (i + 1) * all / parts - first));
    }
    while (ranked_ + 2 <= kRanked && split_worst(stretches)) {
    }
    return stably_sorted(std::move(stretches),
                         [](const Stretch &a, const Stretch &b) { return a.cost_of_work() > b.cost_of_work(); });
  }

  bool split_worst(std::vector<Stretch> &stretches) {
    const auto cost = [](const Stretch &stretch) { return stretch.count > 1 ? stretch.alone.relative() : -1; };
    const auto worst = std::ranges::max_element(stretches, {}, cost);
    if (worst == stretches.end() || worst->count < 2) return false;
    const std::size_t half = worst->count / 2;
    const Stretch second = measured(worst->first + half, worst->count - half);
    *worst = measured(worst->first, half);
    stretches.insert(worst + 1, second);
    return true;
  }

  bool holds(const std::vector<Stretch> &stretches) const { return goal_.met_by(convert(without(stretches), nullptr)); }

  std::vector<Stretch> fewest(const std::vector<Stretch> &worst) const {
    const auto first = [&](std::size_t count) {
      return std::vector(worst.begin(), worst.begin() + static_cast<std::ptrdiff_t>(count));
    };
    std::size_t low = 1, high = worst.size();
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (holds(first(middle)))
        high = middle;
      else
        low = middle + 1;
    }
    std::vector<Stretch> kept = first(high);
    for (std::size_t i = kept.size(), tries = 0; i-- > 0 && tries < kGivenBack; ++tries) {
      std::vector<Stretch> fewer = kept;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (holds(fewer)) kept = std::move(fewer);
    }
    return kept;
  }

  const graph::Graph &real_, &quantized_;
  const std::vector<std::size_t> nodes_;  // that round, in the order of the network
  const std::vector<double> work_;        // of each node of the network
  const Goal &goal_;
  const FallBack &fall_back_;
  const Progress &progress_;
  std::size_t ranked_ = 0;
};

}  // namespace

std::vector<FallenLayer> reach(PreparedModel &prepared, const Goal &goal, const FallBack &fall_back,
                               const Progress &progress) {
  const graph::Graph quantized = convert(prepared, nullptr);
  if (goal.met_by(quantized)) return {};
  Search search(prepared, quantized, goal, fall_back, progress);
  const std::vector<Stretch> fallen = search.run();
  prepared = search.without(fallen);
  return search.layers(fallen);
}

}  // namespace qtn::quant
