// SPDX-License-Identifier: Apache-2.0
#include "quant/weights.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "core/scales.hpp"
#include "graph/integer.hpp"
#include "graph/weight_sums.hpp"
#include "quant/observe/kinds.hpp"

namespace qtn::quant {
namespace {

float product(double sx, double sw) { return static_cast<float>(sx) * static_cast<float>(sw); }

/// ONNX Runtime's rule: |b| / (sx * sw) stays a hair inside int32. It works in float32 per channel, in double per
/// tensor.
double span_of_bias(float largest, bool per_channel) {
  return per_channel ? static_cast<double>(1.0001f * (2.0f * largest)) : 1.0001 * (2.0 * static_cast<double>(largest));
}

/// The least scale of weights from `sw` on with which a unit of sums is not below `smallest`.
double raised(double sw, double sx, double smallest) {
  const double unit = static_cast<double>(static_cast<float>(sx)) * static_cast<double>(static_cast<float>(sw));
  if (unit >= smallest) return sw;
  return static_cast<double>(static_cast<float>(static_cast<double>(static_cast<float>(sw)) * (smallest / unit)));
}

/// Sums of the magnitudes of the weights that share a scale and an output.
class WeightSums {
 public:
  /// All stay with the caller.
  WeightSums(const graph::Node &node, const Tensor &weight, const Quantizer &q)
      : node_(node), weight_(weight), q_(q), depth_(static_cast<double>(graph::weight_depth(node, weight.shape()))) {}

  double depth() const { return depth_; }

  /// In steps of the scale: no integers sum up to more. Floats of 8 bits have no such bound.
  double most() const {
    const std::int64_t width = q_.range().hi - q_.range().lo;
    return width > 0 ? static_cast<double>(width) * depth_ : std::numeric_limits<double>::infinity();
  }

  /// The largest of a scale.
  double of(std::size_t channel) {
    if (sums_.empty()) sums_ = graph::weight_magnitudes(weight_, graph::output_channel_axis(node_));
    return q_.per_channel() ? sums_[channel] : *std::ranges::max_element(sums_);
  }

 private:
  const graph::Node &node_;
  const Tensor &weight_;
  const Quantizer &q_;
  const double depth_;
  std::vector<double> sums_;  // when first asked for, which takes a pass over the weights
};

/// `bias`: the largest magnitude.
double roomy_scale(double sw, double sx, float bias, bool per_channel, WeightSums &sums, std::size_t channel) {
  using graph::kMostActivation, graph::kMostSum;
  sw = raised(sw, sx, span_of_bias(bias, per_channel) / (2 * kMostSum));
  // ONNX Runtime stops here. Products are added to the bias: beside one at its limit a few of them overflow, and many do by
  // themselves. Rounding adds half a step to each weight at most.
  const auto overflows = [&](double steps) {
    return static_cast<double>(bias / product(sx, sw)) + kMostActivation * steps > kMostSum;
  };
  const double rounded = sums.depth() / 2;
  if (overflows(sums.most()) && overflows(sums.of(channel) / sw + rounded))
    sw = 1.0001 * (kMostActivation * sums.of(channel) + static_cast<double>(bias) / sx) /
         (kMostSum - kMostActivation * rounded);
  // A product below float32's normal numbers would have no scale of its own.
  constexpr double kTiny = 2.0 * static_cast<double>(std::numeric_limits<float>::min());
  if (static_cast<double>(product(sx, sw)) < kTiny / 2) sw = kTiny / static_cast<double>(static_cast<float>(sx));
  return sw;
}

bool in_blocks(const Settings &settings) { return settings.weight.has("block_size"); }

/// Channels are those of the output, blocks divide those of the input, which products sum over.
std::size_t scale_axis(const graph::Node &node, bool blocks) {
  const std::size_t output = graph::output_channel_axis(node);
  return blocks ? 1 - output : output;
}

std::unique_ptr<Observer> weight_observer(const graph::Node &node, const Settings &settings) {
  Attrs attrs = settings.weight;
  attrs.set("axis", static_cast<std::int64_t>(scale_axis(node, in_blocks(settings))));
  return make_observer(settings.weight_observer, attrs);
}

/// Integers on a grid with these scales, which is the chosen one except for them. They are rounded under the recipe's
/// rule; from there on they stand for themselves, and files know one rule, and scales of float32.
Tensor quantized_on(const Tensor &weight, const Quantizer &chosen, std::vector<double> scales) {
  const auto grid = [&](Numerics numerics, std::optional<IntegerRange> range) {
    return std::make_shared<Quantizer>(chosen.dtype(), chosen.scheme(), chosen.axis(), scales, chosen.zero_points(),
                                       numerics, chosen.block_size(), range);
  };
  const Tensor integers = quantize(weight, grid(chosen.numerics(), chosen.range()));
  for (double &scale : scales) scale = static_cast<double>(static_cast<float>(scale));
  return integers.with_quantizer(grid(Numerics::onnx, {}));
}

QuantizerPtr observed_grid(const graph::Node &node, const Tensor &weight, const Settings &settings) {
  const std::unique_ptr<Observer> observer = weight_observer(node, settings);
  observer->observe(weight);
  return observer->quantizer();
}

}  // namespace

ObserverSettings weight_observer_settings(const graph::Node &node, const Settings &settings) {
  return weight_observer(node, settings)->settings();
}

QuantizerPtr averaged_grid(const graph::Node &node, const Tensor &weight, const Tensor &running,
                           const Settings &settings) {
  const ObserverSettings of = weight_observer_settings(node, settings);
  const Ranges now = measure(weight.to_contiguous(), of);
  if (running.count() != static_cast<std::int64_t>(2 * now.size()))
    fail(QTN_EINTERNAL, "convert: ", now.size(), " ranges of weights, ", running.count() / 2, " were trained");
  const float *mins = running.as<const float>(), *maxs = mins + now.size();
  Ranges mean{{mins, maxs}, {maxs, maxs + now.size()}};
  move_towards(mean, now, static_cast<float>(of.averaging_constant));
  return choose_from(mean, of);
}

IntegerRange weight_range(const graph::Node &node, const Tensor &weight, const Settings &settings) {
  return observed_grid(node, weight, settings)->range();
}

Tensor quantize_weight(const graph::Node &node, const Tensor &weight, const Tensor *bias, double input_scale,
                       const Settings &settings, const QuantizerPtr &learned) {
  const QuantizerPtr chosen = learned ? learned : observed_grid(node, weight, settings);
  std::vector<double> scales = chosen->scales();
  const bool deep = graph::weight_depth(node, weight.shape()) > graph::kSureDepth;
  if ((bias || deep) && !chosen->per_block()) {
    const std::vector<float> values = bias ? float_values(*bias, "bias") : std::vector<float>();
    WeightSums sums(node, weight, *chosen);
    for (std::size_t c = 0; c < scales.size(); ++c) {
      float largest = 0;
      for (std::size_t i = c; i < values.size(); i += scales.size()) largest = std::max(largest, std::fabs(values[i]));
      scales[c] = roomy_scale(scales[c], input_scale, largest, chosen->per_channel(), sums, c);
    }
  }
  return quantized_on(weight, *chosen, std::move(scales));
}

Tensor quantize_weight_along(const Tensor &weight, std::int64_t axis, const Settings &settings) {
  Attrs attrs = settings.weight;
  attrs.set("axis", axis);
  const std::unique_ptr<Observer> observer = make_observer(settings.weight_observer, attrs);
  observer->observe(weight);
  const QuantizerPtr chosen = observer->quantizer();
  return quantized_on(weight, *chosen, chosen->scales());
}

Tensor quantize_weight_of(const graph::Graph &g, const graph::Node &node, const Tensor *bias, double input_scale,
                          const Settings &settings, const char *who, const QuantizerPtr &learned) {
  const graph::Value &weight = g.value(node.inputs[1]);
  try {
    return quantize_weight(node, weight.constant, bias, input_scale, settings, learned);
  } catch (const Error &e) {
    fail(e.status(), who, ": weight \"", weight.name, "\" of node \"", node.name, "\": ", e.what());
  }
}

Tensor quantize_bias(const Tensor &bias, double input_scale, const Quantizer &weight) {
  const std::vector<float> values = float_values(bias, "bias");
  // Groups of ConvTranspose share the scales along their weight's axis of filters.
  std::vector<double> units(weight.per_channel() ? values.size() : 1);
  for (std::size_t c = 0; c < units.size(); ++c)
    units[c] = static_cast<double>(product(input_scale, weight.scales()[c % weight.count()]));
  std::vector<std::int32_t> integers;
  for (std::size_t c = 0; c < values.size(); ++c) {
    const double q = std::nearbyint(static_cast<double>(values[c]) / units[units.size() == 1 ? 0 : c]);
    const double inside = std::clamp(q, static_cast<double>(std::numeric_limits<std::int32_t>::min()),
                                     static_cast<double>(std::numeric_limits<std::int32_t>::max()));
    integers.push_back(static_cast<std::int32_t>(inside));
  }
  const qscheme scheme = weight.per_channel() ? QTN_PER_CHANNEL_SYMMETRIC : QTN_PER_TENSOR_SYMMETRIC;
  std::vector<std::int64_t> zeros(units.size(), 0);
  return Tensor::from<std::int32_t>(QTN_INT32, bias.shape(), integers)
      .with_quantizer(
          std::make_shared<Quantizer>(QTN_INT32, scheme, 0, std::move(units), std::move(zeros), Numerics::onnx));
}

}  // namespace qtn::quant
