// SPDX-License-Identifier: Apache-2.0
#include "quant/recover/smooth.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "graph/facts.hpp"
#include "graph/integer.hpp"
#include "graph/unique_names.hpp"
#include "quant/placement.hpp"
#include "quant/recover/layer.hpp"
#include "runtime/watched.hpp"

namespace qtn::quant {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

constexpr double kStrengths[] = {0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
constexpr double kWorthIt = 0.5;        // of the noise without factors
constexpr double kNegligible = 1e-6;    // of the largest product of a feature and its weights
constexpr double kLargestFactor = 1e4;  // as a multiple of their mean
constexpr double kEnoughRows = 64;      // to know how features differ
constexpr double kDeviations = 4;       // of a normal distribution, beyond which there is one number in 16,000

/// What the samples have of one feature.
struct Feature {
  double lo = 0, hi = 0, squares = 0;

  /// As large as it may become in some thousands of rows. The largest of few rows is chance, and a factor that follows
  /// it clips the rows that come later.
  double largest(double rows) const { return std::max({-lo, hi, kDeviations * std::sqrt(squares / rows)}); }
};

/// A value whose features get factors, and the products that read it.
struct Site {
  std::vector<std::size_t> readers;
  std::vector<Feature> features;
  double rows = 0;

  void see(const Tensor &t) {
    const Tensor plain = t.to_contiguous();
    const auto *x = plain.as<const float>();
    const std::int64_t count = plain.count() / static_cast<std::int64_t>(features.size());
    for (std::int64_t r = 0; r < count; ++r)
      for (Feature &f : features) {
        const auto v = static_cast<double>(*x++);
        f.lo = std::min(f.lo, v);
        f.hi = std::max(f.hi, v);
        f.squares += v * v;
      }
    rows += static_cast<double>(count);
  }
};

std::optional<Layer> product_of_features(const Graph &g, const Node &node) {
  const Tensor *weight = product_weight(g, node);
  if (!weight || graph::is_convolution(node)) return std::nullopt;
  return layer_of(node, weight->shape());
}

/// By value: whether floats are at hand at no cost that counts. They are what a node makes in float, or products of
/// features, or follow from such values element by element. Images of convolutions stay integers.
std::vector<bool> may_be_floats(const Graph &g, const Placement &placement) {
  std::vector<bool> may(g.values.size(), false);
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    const Node &node = g.nodes[n];
    const NodePlan &plan = placement.nodes[n];
    bool so = !plan.integer || (plan.role == Role::weighted && !graph::is_convolution(node));
    if (plan.integer && (plan.role == Role::moving || node.op->elementwise))
      so = std::ranges::all_of(node.inputs, [&](ValueId v) {
        return v == graph::kNoValue || may[static_cast<std::size_t>(v)] ||
               placement.group[static_cast<std::size_t>(v)] < 0;
      });
    for (const ValueId v : node.outputs)
      if (v != graph::kNoValue) may[static_cast<std::size_t>(v)] = so;
  }
  return may;
}

std::map<ValueId, Site> find_sites(const Graph &g, const Config &config) {
  const Placement placement = place(g, config);
  const std::vector<bool> floats = may_be_floats(g, placement);
  std::map<ValueId, Site> sites;
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    const auto layer = placement.nodes[n].integer ? product_of_features(g, g.nodes[n]) : std::nullopt;
    const ValueId x = layer ? g.nodes[n].inputs[0] : graph::kNoValue;
    // A rule for this tensor is for what products read.
    if (!layer || layer->depth < 2 || !floats[static_cast<std::size_t>(x)] || config.names_tensor(g.value(x).name))
      continue;
    Site &site = sites[x];
    site.readers.push_back(n);
    site.features.resize(static_cast<std::size_t>(layer->depth));
  }
  return sites;
}

/// Leaves out what so many samples are known to bring too few rows of.
void remove_rare(std::map<ValueId, Site> &sites, const Graph &g, std::size_t samples) {
  const graph::Facts facts(g);
  if (facts.open) return;
  std::erase_if(sites, [&](const auto &entry) {
    const auto &type = facts.types[static_cast<std::size_t>(entry.first)];
    if (!type) return false;
    const double of_sample =
        static_cast<double>(element_count(type->shape)) / static_cast<double>(entry.second.features.size());
    return of_sample * static_cast<double>(samples) < kEnoughRows;
  });
}

/// The weights of a product of features.
struct Matrix {
  Tensor weights;  ///< contiguous
  Layer layer;

  std::size_t channels() const { return static_cast<std::size_t>(layer.channels()); }

  /// Calls f(channel, feature, weight) as they lie in memory. Those of a feature come in the order of channels.
  template <class F>
  void for_each(F &&f) const {
    float *at = weights.as<float>();
    const auto features = static_cast<std::size_t>(layer.depth);
    if (layer.transposed)
      for (std::size_t j = 0; j < features; ++j)
        for (std::size_t c = 0; c < channels(); ++c) f(c, j, *at++);
    else
      for (std::size_t c = 0; c < channels(); ++c)
        for (std::size_t j = 0; j < features; ++j) f(c, j, *at++);
  }
};

std::vector<Matrix> weights_of(const Graph &g, const Site &site) {
  std::vector<Matrix> all;
  for (const std::size_t n : site.readers) {
    const Tensor *weight = product_weight(g, g.nodes[n]);
    all.push_back({weight->to_contiguous(), *layer_of(g.nodes[n], weight->shape())});
  }
  return all;
}

class Factors {
 public:
  Factors(const Site &site, std::vector<Matrix> weights)
      : site_(site), weights_(std::move(weights)), width_(site.features.size()), peaks_(width_), squares_(width_) {
    for (const Matrix &matrix : weights_)
      matrix.for_each([&](std::size_t, std::size_t j, float weight) __attribute__((always_inline)) {
        const double w = std::fabs(static_cast<double>(weight));
        peaks_[j] = std::max(peaks_[j], w);
        squares_[j] += w * w;
      });
  }

  /// Empty where nothing is worth it.
  std::vector<double> best() const {
    double least = kWorthIt * noise(std::vector<double>(width_, 1));
    std::vector<double> best;
    for (const double strength : kStrengths) {
      std::vector<double> factors = of_strength(strength);
      if (const double expected = noise(factors); expected < least) {
        least = expected;
        best = std::move(factors);
      }
    }
    return best;
  }

 private:
  /// Their geometric mean is 1, which is what features have that hardly count.
  std::vector<double> of_strength(double strength) const {
    double most = 0;
    for (std::size_t j = 0; j < width_; ++j) most = std::max(most, site_.features[j].largest(site_.rows) * peaks_[j]);
    std::vector<double> factors(width_, 1);
    std::vector<std::size_t> counted;
    double logarithms = 0;
    for (std::size_t j = 0; j < width_; ++j) {
      const double x = site_.features[j].largest(site_.rows);
      if (!(x * peaks_[j] > kNegligible * most)) continue;
      factors[j] = std::pow(x, strength) / std::pow(peaks_[j], 1 - strength);
      logarithms += std::log(factors[j]);
      counted.push_back(j);
    }
    const double mean = counted.empty() ? 1 : std::exp(logarithms / static_cast<double>(counted.size()));
    for (const std::size_t j : counted) factors[j] = std::clamp(factors[j] / mean, 1 / kLargestFactor, kLargestFactor);
    return factors;
  }

  double noise(const std::vector<double> &factors) const {
    double lo = 0, hi = 0, by_activations = 0, power = 0;
    for (std::size_t j = 0; j < width_; ++j) {
      const Feature &f = site_.features[j];
      lo = std::min(lo, f.lo / factors[j]);
      hi = std::max(hi, f.hi / factors[j]);
      by_activations += factors[j] * factors[j] * squares_[j];
      power += f.squares / site_.rows / (factors[j] * factors[j]);
    }
    double by_weights = 0;
    for (const Matrix &matrix : weights_) {
      std::vector<double> largest(matrix.channels(), 0);
      matrix.for_each([&](std::size_t c, std::size_t j, float weight) __attribute__((always_inline)) {
        largest[c] = std::max(largest[c], std::fabs(static_cast<double>(weight)) * factors[j]);
      });
      for (const double w : largest) by_weights += w * w / (127.0 * 127.0);
    }
    const double step = (hi - lo) / 255;
    return step * step * by_activations + by_weights * power;
  }

  const Site &site_;
  const std::vector<Matrix> weights_;
  const std::size_t width_;
  std::vector<double> peaks_, squares_;  ///< of each feature's weights
};

class Smoothing {
 public:
  explicit Smoothing(Graph &g) : g_(g) {
    for (const graph::Value &value : g.values) names_.take(value.name);
    for (const Node &node : g.nodes) names_.take(node.name);
  }

  void divide(ValueId x, const Site &site, const std::vector<double> &factors) {
    std::vector<float> inverse;
    for (const double factor : factors) inverse.push_back(static_cast<float>(1 / factor));
    const std::string name = g_.value(x).name;
    const Shape width{static_cast<std::int64_t>(factors.size())};
    const ValueId by =
        g_.add_constant(names_.make(name + "_smoothing"), Tensor::from<float>(QTN_FLOAT32, width, std::span(inverse)));
    graph::Value value = g_.value(x);
    value.name = names_.make(name + "_smooth");
    const ValueId smooth = g_.add_value(std::move(value));
    made_[x] = {names_.make(name + "_Smooth"), ops::find_op("Mul"), {}, {x, by}, {smooth}, {}};
    for (const std::size_t n : site.readers) {
      Node &node = g_.nodes[n];
      node.inputs[0] = smooth;
      const Tensor weight = g_.value(node.inputs[1]).constant.clone();
      const Matrix matrix{weight, *layer_of(node, weight.shape())};
      matrix.for_each([&](std::size_t, std::size_t j, float &w)
                          __attribute__((always_inline)) { w *= 1 / inverse[j]; });
      node.inputs[1] = g_.add_constant(names_.make(g_.value(node.inputs[1]).name + "_smooth"), weight);
    }
  }

  bool apply() {
    if (made_.empty()) return false;
    std::vector<Node> nodes;
    for (Node &node : g_.nodes) {
      const std::vector<ValueId> outputs = node.outputs;
      nodes.push_back(std::move(node));
      for (const ValueId v : outputs)
        if (const auto made = made_.find(v); made != made_.end()) nodes.push_back(std::move(made->second));
    }
    g_.nodes = std::move(nodes);
    graph::remove_dead(g_);
    return true;
  }

 private:
  Graph &g_;
  graph::UniqueNames names_;
  std::map<ValueId, Node> made_;  ///< by what they read
};

}  // namespace

bool smooth_features(Graph &g, const Config &config, const Samples &samples) {
  std::map<ValueId, Site> sites = find_sites(g, config);
  remove_rare(sites, g, samples.count);
  if (sites.empty()) return false;
  std::vector<ValueId> values;
  for (const auto &[value, site] : sites) values.push_back(value);
  runtime::Watched engine(g, values);
  for (std::size_t s = 0; s < samples.count; ++s)
    engine.run(samples.read(s), [&](ValueId v, const Tensor &t) { sites.at(v).see(t); });
  Smoothing smoothing(g);
  for (const auto &[value, site] : sites) {
    if (site.rows < kEnoughRows) continue;
    const std::vector<double> factors = Factors(site, weights_of(g, site)).best();
    if (!factors.empty()) smoothing.divide(value, site, factors);
  }
  return smoothing.apply();
}

}  // namespace qtn::quant
