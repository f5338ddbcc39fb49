// SPDX-License-Identifier: Apache-2.0
#include "quant/recover/equalize.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>

#include "quant/facts.hpp"
#include "quant/recover/layer.hpp"
#include "quant/recover/links.hpp"
#include "runtime/watched.hpp"

namespace qtn::quant {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

constexpr int kSweeps = 40;
constexpr float kSettled = 1e-3f;

std::int64_t channel_axis(const Node &node) { return std::string_view(node.op->name) == "Conv" ? 1 : -1; }

/// Calls see(value, channel) for every element of t, whose channels lie along the axis (-1: the last).
void each_of_channel(const Tensor &t, std::int64_t axis, auto see) {
  const Tensor plain = t.to_contiguous();
  const std::size_t at = axis < 0 ? t.rank() - 1 : static_cast<std::size_t>(axis);
  const std::int64_t inner = element_count(t.shape(), at + 1, t.rank());
  for (std::int64_t i = 0; i < t.count(); ++i) see(plain.as<const float>()[i], i / inner % t.dim(at));
}

/// Runs the samples and shows every link the output of its maker.
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

void equalize_weights(Graph &g, const std::function<bool(const Node &)> &wanted) {
  std::vector<Link> links = find_links(g);
  std::erase_if(links, [&](const Link &link) { return !wanted(g.nodes[link.from]) || !wanted(g.nodes[link.to]); });
  own_constants(g, links);
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    float furthest = 0;
    for (const Link &link : links) {
      const std::vector<float> made = made_by(g, link), read = read_by(g, link);
      std::vector<float> factors(made.size(), 1);
      for (std::size_t c = 0; c < made.size(); ++c) {
        if (made[c] == 0 || read[c] == 0) continue;
        factors[c] = std::sqrt(made[c] / read[c]);
        furthest = std::max(furthest, std::fabs(std::log(factors[c])));
      }
      move_factors(g, link, factors);
    }
    if (furthest < kSettled) break;
  }
  graph::remove_dead(g);
}

void equalize_activations(Graph &g, const Samples &samples, double strength) {
  const std::vector<Link> links = find_links(g);
  std::vector<std::vector<float>> largest(links.size());
  watch_links(g, links, samples, [&](std::size_t i, const Tensor &t) {
    largest[i].resize(static_cast<std::size_t>(links[i].channels), 0);
    each_of_channel(t, channel_axis(g.nodes[links[i].from]), [&](float x, std::int64_t c) {
      float &of_channel = largest[i][static_cast<std::size_t>(c)];
      of_channel = std::max(of_channel, std::fabs(x));
    });
  });
  own_constants(g, links);
  for (std::size_t i = 0; i < links.size(); ++i) {
    const std::vector<float> read = read_by(g, links[i]);
    std::vector<float> factors(read.size(), 1);
    for (std::size_t c = 0; c < read.size(); ++c)
      if (largest[i][c] > 0 && read[c] > 0)
        factors[c] = static_cast<float>(std::pow(static_cast<double>(largest[i][c]), strength) /
                                        std::pow(static_cast<double>(read[c]), 1 - strength));
    move_factors(g, links[i], factors);
  }
  graph::remove_dead(g);
}

void absorb_biases(Graph &g, const Samples &samples) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<Link> links = find_links(g);
  std::erase_if(links, [&](const Link &link) {
    const Node &from = g.nodes[link.from], &to = g.nodes[link.to];
    return !from.clamp || from.clamp->lo != 0 || input_of(from, 2) == kNoValue || !reads_directly(g, link) ||
           std::string_view(to.op->name) == "MatMul" || input_of(to, 2) == kNoValue || has_padding(to);
  });
  std::vector<std::vector<float>> smallest(links.size());
  watch_links(g, links, samples, [&](std::size_t i, const Tensor &t) {
    smallest[i].resize(static_cast<std::size_t>(links[i].channels), kInfinity);
    each_of_channel(t, channel_axis(g.nodes[links[i].from]), [&](float x, std::int64_t c) {
      float &of_channel = smallest[i][static_cast<std::size_t>(c)];
      of_channel = std::min(of_channel, x);
    });
  });
  own_constants(g, links);
  for (std::size_t i = 0; i < links.size(); ++i) move_offsets(g, links[i], smallest[i]);
  graph::remove_dead(g);
}

}  // namespace qtn::quant
