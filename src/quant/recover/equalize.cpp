// SPDX-License-Identifier: Apache-2.0
#include "quant/recover/equalize.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>

#include "graph/facts.hpp"
#include "graph/integer.hpp"
#include "quant/recover/layer.hpp"
#include "quant/recover/linked_scales.hpp"
#include "runtime/watched.hpp"

namespace qtn::quant {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

constexpr int kSweeps = 10;
constexpr double kSettled = 0.01;  // of logarithms of factors
constexpr double kWorthIt = 0.1;   // below that, ranges are equal enough as they are
/// A channel that adds less than this to what reads it, measured by its weights, is left alone: factors that follow
/// from what is nearly nothing would make its bias, which may be everything the channel has, the largest of all.
constexpr double kNegligible = 1e-6;

/// The product of what makes a channel and what reads it does not change with factors.
std::vector<bool> negligible(const std::vector<double> &made, const std::vector<double> &read) {
  double largest = 0;
  for (std::size_t c = 0; c < made.size(); ++c) largest = std::max(largest, made[c] * read[c]);
  std::vector<bool> is(made.size());
  for (std::size_t c = 0; c < made.size(); ++c) is[c] = !(made[c] * read[c] > kNegligible * largest);
  return is;
}

/// 1 where the channel is left alone.
std::vector<double> equalizing(const std::vector<double> &made, const std::vector<double> &read) {
  const std::vector<bool> alone = negligible(made, read);
  std::vector<double> factors(made.size(), 1);
  for (std::size_t c = 0; c < made.size(); ++c)
    if (!alone[c]) factors[c] = std::sqrt(made[c] / read[c]);
  return factors;
}

std::vector<double> smoothing(const std::vector<double> &largest, const std::vector<double> &read, double strength) {
  const std::vector<bool> alone = negligible(largest, read);
  std::vector<double> factors(read.size(), 1);
  for (std::size_t c = 0; c < read.size(); ++c)
    if (!alone[c]) factors[c] = std::pow(largest[c], strength) / std::pow(read[c], 1 - strength);
  return factors;
}

std::int64_t channel_axis(const Node &node) { return graph::is_convolution(node) ? 1 : -1; }

/// Calls see(value, channel) for every element of t, whose channels lie along the axis (-1: the last).
void each_of_channel(const Tensor &t, std::int64_t axis, auto see) {
  const Tensor plain = t.to_contiguous();
  const std::size_t at = axis < 0 ? t.rank() - 1 : static_cast<std::size_t>(axis);
  const std::int64_t inner = element_count(t.shape(), at + 1, t.rank());
  for (std::int64_t i = 0; i < t.count(); ++i) see(plain.as<const float>()[i], i / inner % t.dim(at));
}

/// A number for each channel of each link.
template <class T>
std::vector<std::vector<T>> of_channels(const std::vector<Link> &links, T number) {
  std::vector<std::vector<T>> all;
  for (const Link &link : links) all.emplace_back(static_cast<std::size_t>(link.channels), number);
  return all;
}

/// Runs the samples and shows every link the output of its maker, unless that is not float32.
void watch_links(const Graph &g, const std::vector<Link> &links, const Samples &samples, auto see) {
  std::map<ValueId, std::vector<std::size_t>> of_value;
  for (std::size_t i = 0; i < links.size(); ++i) of_value[g.nodes[links[i].from].outputs[0]].push_back(i);
  std::vector<ValueId> values;
  for (const auto &[value, of] : of_value) values.push_back(value);
  runtime::Watched engine(g, values);
  for (std::size_t s = 0; s < samples.count; ++s)
    engine.run(samples.read(s), [&](ValueId v, const Tensor &t) {
      for (const std::size_t i : of_value.at(v)) see(i, t);
    });
}

/// Whether nothing stands between the two layers.
bool reads_directly(const Graph &g, const Link &link) {
  return g.nodes[link.from].outputs[0] == g.nodes[link.to].inputs[0];
}

bool has_padding(const Node &node) {
  const std::vector<std::int64_t> pads = node.attrs.get_ints("pads");
  return node.attrs.get_string("auto_pad", "NOTSET") != "NOTSET" ||
         std::any_of(pads.begin(), pads.end(), [](std::int64_t p) { return p != 0; });
}

}  // namespace

bool equalize_weights(Graph &g, const std::function<bool(const Node &)> &wanted) {
  std::vector<Link> links = find_links(g);
  std::erase_if(links, [&](const Link &link) { return !wanted(g.nodes[link.from]) || !wanted(g.nodes[link.to]); });
  LinkedScales scales(g, std::move(links));
  bool moved = false;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    double furthest = 0;
    for (std::size_t i = 0; i < scales.count(); ++i) {
      const std::vector<double> factors = equalizing(scales.made(i), scales.read(i));
      for (const double factor : factors) furthest = std::max(furthest, std::fabs(std::log(factor)));
      scales.divide(i, factors);
    }
    moved = moved || furthest >= kWorthIt;
    if (furthest < kSettled) break;
  }
  if (moved) scales.apply();
  return moved;
}

bool equalize_activations(Graph &g, const Samples &samples, double strength) {
  const std::vector<Link> links = find_links(g);
  std::vector<std::vector<double>> largest = of_channels(links, 0.0);
  watch_links(g, links, samples, [&](std::size_t i, const Tensor &t) {
    each_of_channel(t, channel_axis(g.nodes[links[i].from]), [&](float x, std::int64_t c) {
      double &of_channel = largest[i][static_cast<std::size_t>(c)];
      of_channel = std::max(of_channel, std::fabs(static_cast<double>(x)));
    });
  });
  LinkedScales scales(g, links);
  for (std::size_t i = 0; i < links.size(); ++i) scales.divide(i, smoothing(largest[i], scales.read(i), strength));
  if (!links.empty()) scales.apply();
  return !links.empty();
}

bool absorb_biases(Graph &g, const Samples &samples) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<Link> links = find_links(g);
  std::erase_if(links, [&](const Link &link) {
    const Node &from = g.nodes[link.from], &to = g.nodes[link.to];
    return !from.clamp || from.clamp->lo != 0 || !has_biases(g, link) || !reads_directly(g, link) || has_padding(to);
  });
  std::vector<std::vector<float>> smallest = of_channels(links, kInfinity);
  watch_links(g, links, samples, [&](std::size_t i, const Tensor &t) {
    each_of_channel(t, channel_axis(g.nodes[links[i].from]), [&](float x, std::int64_t c) {
      float &of_channel = smallest[i][static_cast<std::size_t>(c)];
      of_channel = std::min(of_channel, x);
    });
  });
  own_constants(g, links);
  for (std::size_t i = 0; i < links.size(); ++i)
    if (std::ranges::all_of(smallest[i], [](float x) { return std::isfinite(x); }))
      move_offsets(g, links[i], smallest[i]);
  graph::remove_dead(g);
  return !links.empty();
}

}  // namespace qtn::quant
