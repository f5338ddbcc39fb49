// SPDX-License-Identifier: Apache-2.0
// BatchNormalization with known statistics, in the one form that all of its implementations compute.
#pragma once

#include <cmath>

namespace qtn::ops {

/// y = x * factor + addend, rounded after each step.
struct ChannelLine {
  float factor, addend;
};

/// The line of scale * (x - mean) / sqrt(variance + epsilon) + shift.
inline ChannelLine channel_line(double scale, double shift, double mean, double variance, double epsilon) {
  const double factor = scale / std::sqrt(variance + epsilon);
  return {static_cast<float>(factor), static_cast<float>(shift - mean * factor)};
}

}  // namespace qtn::ops
