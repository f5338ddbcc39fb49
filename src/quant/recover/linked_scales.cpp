// SPDX-License-Identifier: Apache-2.0
#include "quant/recover/linked_scales.hpp"

#include <algorithm>
#include <cmath>

#include "base/parallel.hpp"
#include "graph/facts.hpp"
#include "graph/integer.hpp"

namespace qtn::quant {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

namespace {

/// The largest product of two of them; 0 for products below that. Eight at a time, which become vectors.
double largest_product(const float *a, const double *b, std::size_t count) {
  constexpr std::size_t kLanes = 8;
  double largest[kLanes] = {};
  const auto see = [&](std::size_t lane, std::size_t i) {
    const double product = static_cast<double>(a[i]) * b[i];
    largest[lane] = largest[lane] < product ? product : largest[lane];
  };
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) see(lane, i + lane);
  for (; i < count; ++i) see(0, i);
  return *std::max_element(largest, largest + kLanes);
}

}  // namespace

LinkedScales::LinkedScales(graph::Graph &g, std::vector<Link> links) : g_(g), links_(std::move(links)) {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    factors_.emplace_back(static_cast<std::size_t>(links_[i].channels), 1.0);
    Peaks reader = peaks_of(links_[i].to, links_[i].channels);
    reader.read_by = i;
    layers_.insert_or_assign(links_[i].to, std::move(reader));
  }
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const std::size_t from = links_[i].from;
    if (!layers_.contains(from)) layers_.emplace(from, peaks_of(from, 0));
    layers_.at(from).made = i;
  }
}

/// `input_channels` 0: no caller will ask which input a weight reads.
LinkedScales::Peaks LinkedScales::peaks_of(std::size_t node, std::int64_t input_channels) const {
  const Node &n = g_.nodes[node];
  const Tensor weight = g_.value(n.inputs[1]).constant.to_contiguous();
  // A LayerNormalization has one weight for each channel.
  const Layer layer = layer_of(n, weight.shape()).value_or(Layer{1, weight.count(), 1});
  const std::int64_t inputs = input_channels ? input_channels / layer.groups : 1;
  const std::int64_t taps = layer.depth / inputs;
  Peaks peaks{layer.channels(), inputs, layer.outputs, {}, {}};
  peaks.weights.resize(static_cast<std::size_t>(peaks.channels * inputs));
  peaks.bias.resize(static_cast<std::size_t>(peaks.channels));
  const auto *w = weight.as<const float>();
  parallel_for(static_cast<std::size_t>(peaks.channels), [&](std::size_t channel) {
    const auto c = static_cast<std::int64_t>(channel);
    for (std::int64_t k = 0; k < inputs; ++k) {
      float largest = 0;
      for (std::int64_t t = 0; t < taps; ++t)
        largest = std::max(largest, std::fabs(w[weight_index(layer, c, k * taps + t)]));
      peaks.weights[static_cast<std::size_t>(c * inputs + k)] = largest;
    }
  });
  if (const Tensor *bias = float_constant(g_, input_of(n, 2)); bias && graph::is_of_channels(*bias, peaks.channels)) {
    const std::vector<float> values = float_values(*bias, "bias");
    const bool positive = n.clamp && n.clamp->lo == 0;
    std::transform(values.begin(), values.end(), peaks.bias.begin(),
                   [positive](float b) { return positive ? std::max(b, 0.0f) : std::fabs(b); });
  }
  return peaks;
}

std::vector<double> LinkedScales::input_factors(const Peaks &peaks) const {
  if (peaks.read_by != kNone) return factors_[peaks.read_by];
  return std::vector<double>(static_cast<std::size_t>(peaks.channels / peaks.outputs_of_group * peaks.inputs_of_group),
                             1.0);
}

double LinkedScales::output_divisor(const Peaks &peaks, std::size_t c) const {
  return peaks.made == kNone ? 1.0 : factors_[peaks.made][c];
}

std::vector<double> LinkedScales::made(std::size_t i) const {
  const Peaks &peaks = layers_.at(links_[i].from);
  const auto inputs = static_cast<std::size_t>(peaks.inputs_of_group);
  const std::vector<double> factors = input_factors(peaks);
  std::vector<double> largest(static_cast<std::size_t>(links_[i].channels));
  parallel_for(largest.size(), [&](std::size_t c) {
    const double weights =
        largest_product(peaks.weights.data() + c * inputs, factors.data() + peaks.input(c, 0), inputs);
    largest[c] = std::max(static_cast<double>(peaks.bias[c]), weights) / output_divisor(peaks, c);
  });
  return largest;
}

std::vector<double> LinkedScales::read(std::size_t i) const {
  const Peaks &peaks = layers_.at(links_[i].to);
  const auto inputs = static_cast<std::size_t>(peaks.inputs_of_group);
  const auto channels = static_cast<std::size_t>(links_[i].channels);
  const auto lanes = static_cast<std::size_t>(current_threads());
  std::vector<std::vector<double>> of_lanes(lanes, std::vector<double>(channels));
  parallel_ranges(lanes, static_cast<std::size_t>(peaks.channels),
                  [&](std::size_t begin, std::size_t end, std::size_t lane) {
                    for (std::size_t c = begin; c < end; ++c) {
                      const float *weights = peaks.weights.data() + c * inputs;
                      const double factor = 1 / output_divisor(peaks, c);
                      double *of_inputs = of_lanes[lane].data() + peaks.input(c, 0);
                      for (std::size_t k = 0; k < inputs; ++k) {
                        const double weight = static_cast<double>(weights[k]) * factor;
                        of_inputs[k] = of_inputs[k] < weight ? weight : of_inputs[k];
                      }
                    }
                  });
  std::vector<double> largest(channels);
  for (const std::vector<double> &of_lane : of_lanes)
    for (std::size_t c = 0; c < channels; ++c) largest[c] = std::max(largest[c], of_lane[c] * factors_[i][c]);
  return largest;
}

void LinkedScales::divide(std::size_t i, std::span<const double> factors) {
  constexpr double kMost = 65536;
  for (std::size_t c = 0; c < factors.size(); ++c)
    factors_[i][c] = std::clamp(factors_[i][c] * factors[c], 1 / kMost, kMost);
}

void LinkedScales::scale_constants(std::size_t node, const Peaks &peaks) {
  const auto own = [&](ValueId old, Tensor t) {
    const std::string name = g_.value(old).name;
    return g_.add_constant(name + "_equalized", std::move(t));
  };
  const std::vector<ValueId> inputs = g_.nodes[node].inputs;
  const Tensor weight = g_.value(inputs[1]).constant.clone();
  const Layer layer = layer_of(g_.nodes[node], weight.shape()).value_or(Layer{1, weight.count(), 1});
  const std::int64_t taps = layer.depth / peaks.inputs_of_group;
  auto *w = weight.as<float>();
  const std::vector<double> factors = input_factors(peaks);
  parallel_for(static_cast<std::size_t>(peaks.channels), [&](std::size_t c) {
    for (std::int64_t k = 0; k < peaks.inputs_of_group; ++k) {
      const auto factor =
          static_cast<float>(factors[peaks.input(c, static_cast<std::size_t>(k))] / output_divisor(peaks, c));
      for (std::int64_t t = 0; t < taps; ++t)
        w[weight_index(layer, static_cast<std::int64_t>(c), k * taps + t)] *= factor;
    }
  });
  g_.nodes[node].inputs[1] = own(inputs[1], weight);
  if (peaks.made == kNone || input_of(g_.nodes[node], 2) == kNoValue) return;
  const Tensor bias = g_.value(inputs[2]).constant.clone();
  for (std::size_t c = 0; c < static_cast<std::size_t>(peaks.channels); ++c)
    bias.as<float>()[c] = static_cast<float>(static_cast<double>(bias.as<float>()[c]) / output_divisor(peaks, c));
  g_.nodes[node].inputs[2] = own(inputs[2], bias);
}

void LinkedScales::apply() {
  for (const auto &[node, peaks] : layers_) scale_constants(node, peaks);
  graph::remove_dead(g_);
}

}  // namespace qtn::quant
