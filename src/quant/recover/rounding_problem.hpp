// SPDX-License-Identifier: Apache-2.0
// Which integers the weights of a layer become so that its outputs, not its weights, come out nearest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace qtn::quant {

/// Rows w with steps and zero points for each element: q stands for ŵ = (q - zero) * step, lo <= q <= hi. What is to be
/// small is E (w x - ŵ x̂)² = ŵ QQ ŵ' - 2 ŵ QY + const.
struct RoundingProblem {
  std::int64_t outputs, depth;
  std::span<const float> weights, steps;  ///< [outputs][depth]
  std::span<const std::int64_t> zeros;    ///< [outputs][depth]
  std::int64_t lo, hi;                    ///< less than 2^22 apart
  std::span<const float> qq;              ///< [depth][depth], mean of x̂ x̂'
  std::span<const float> qy;              ///< [depth][outputs], mean of x̂ (w x)

  std::size_t at(std::int64_t row, std::int64_t k) const { return static_cast<std::size_t>(row * depth + k); }

  /// What an integer stands for.
  float real(std::size_t i, std::int64_t q) const { return static_cast<float>(q - zeros[i]) * steps[i]; }

  /// The integer nearest to weight i, or to another weight in its place.
  std::int64_t nearest(std::size_t i) const { return nearest(i, weights[i]); }
  std::int64_t nearest(std::size_t i, float weight) const {
    const float zero = static_cast<float>(zeros[i]), at = weight / steps[i];
    if (at != at) return zeros[i];  // feedback of huge weights, or a step that no float32 holds
    // Floats of that size are whole numbers: the sum is rounded to one of them, ties to even.
    constexpr float kWhole = 0x1.8p23f;
    const float inside = std::clamp(at, static_cast<float>(lo) - zero, static_cast<float>(hi) - zero);
    return zeros[i] + static_cast<std::int64_t>((inside + kWhole) - kWhole);
  }
};

/// All of a problem's, [outputs][depth].
std::vector<std::int64_t> nearest_integers(const RoundingProblem &p);
std::vector<float> reals(const RoundingProblem &p, std::span<const std::int64_t> integers);

/// ŵ QQ - QY' [outputs][depth]: half of the slope of what is to be small.
std::vector<float> half_slope(const RoundingProblem &p, std::span<const float> rounded);

/// Puts the nearest integers into the rows of `integers` that are no better than these.
void keep_better_rows(const RoundingProblem &p, std::vector<std::int64_t> &integers);

}  // namespace qtn::quant
