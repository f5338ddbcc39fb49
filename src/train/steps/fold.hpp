// SPDX-License-Identifier: Apache-2.0
// A normalization that will be folded into the weights before it: they are rounded as they will be then.
#pragma once

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "train/network.hpp"

namespace qtn::train {

/// What an integer of the sums of a layer stands for, which its bias is rounded to: the scale of its input times that
/// of its weights, one for each output channel or for all. With few bits that is coarse, and a network that has not
/// learned with it answers worse. Empty: nothing is rounded. Nor is what does not fit 32 bits: conversion takes a unit in
/// which it does, and which is below what float32 can tell apart.
struct BiasUnits {
  std::vector<float> of_channel = {};

  float rounded(double bias, std::size_t c) const {
    if (of_channel.empty()) return static_cast<float>(bias);
    const auto unit = static_cast<double>(of_channel[c % of_channel.size()]);
    const bool fits = std::fabs(bias) < unit * std::numeric_limits<std::int32_t>::max();
    return static_cast<float>(fits ? unit * std::nearbyint(bias / unit) : bias);
  }
};

/// Weights are multiplied by factor[c] = scale[c] / sqrt(running variance + epsilon), and what they make is divided by
/// it again before it is normalized. Where the scale is 0 the factor is what it is for 1: such a channel puts out its
/// offset, whatever its weights, and can still learn another scale.
struct Fold {
  const Statistics &statistics;
  const Tensor scale;
  double epsilon;
  std::shared_ptr<const BiasUnits> units;
  std::vector<float> factor = {};

  double running_rstd(std::size_t c) const {
    return 1.0 / std::sqrt(static_cast<double>(statistics.variance.as<const float>()[c]) + epsilon);
  }
  bool follows_scale(std::size_t c) const { return scale.as<const float>()[c] != 0.0f; }

  /// Follows the current statistics and scale.
  void renew() {
    factor.resize(static_cast<std::size_t>(scale.count()));
    for (std::size_t c = 0; c < factor.size(); ++c) {
      const double gain = follows_scale(c) ? static_cast<double>(scale.as<const float>()[c]) : 1.0;
      factor[c] = static_cast<float>(gain * running_rstd(c));
    }
  }
};

}  // namespace qtn::train
