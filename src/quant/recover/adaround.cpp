// SPDX-License-Identifier: Apache-2.0
#include "quant/recover/adaround.hpp"

#include <algorithm>
#include <cmath>

namespace qtn::quant {
namespace {

// The paper's: the sigmoid is stretched to [-0.1, 1.1] and cut off, so that it reaches 0 and 1.
constexpr float kLow = -0.1f, kHigh = 1.1f;
constexpr float kPenalty = 0.01f, kFirstBeta = 20.0f, kLastBeta = 2.0f, kWarmUp = 0.2f;
// Adam's.
constexpr float kRate = 0.02f, kMean = 0.9f, kSquare = 0.999f, kTiny = 1e-8f;

class Learner {
 public:
  explicit Learner(const RoundingProblem &p)
      : p_(p), count_(p.weights.size()), down_(count_), v_(count_), mean_(count_), square_(count_), slope_(count_) {
    for (std::size_t i = 0; i < count_; ++i) {
      constexpr float kFar = 0x1p30f;  // beyond all integers of weights
      const auto zero = static_cast<float>(p.zeros[i]);
      const float place = p.weights[i] / p.steps[i] + zero,
                  at = std::isnan(place) ? zero : std::clamp(place, -kFar, kFar);
      down_[i] = std::floor(at);
      const float part = std::clamp(at - down_[i], 1e-4f, 1 - 1e-4f);
      v_[i] = -std::log((kHigh - kLow) / (part - kLow) - 1);
    }
  }

  std::vector<std::int64_t> learn(int iterations) {
    const std::vector<double> scale = row_scales();
    for (int t = 0; t < iterations; ++t) step(t, iterations, scale);
    std::vector<std::int64_t> q(count_);
    for (std::size_t i = 0; i < count_; ++i)
      q[i] = std::clamp(static_cast<std::int64_t>(down_[i]) + (part(i) >= 0.5f ? 1 : 0), p_.lo, p_.hi);
    return q;
  }

  /// Moves single integers by one while that makes a row better; slope_ follows.
  void descend(std::vector<std::int64_t> &q) {
    slope_ = half_slope(p_, reals(p_, q));
    constexpr int kSweeps = 10;
    for (std::int64_t r = 0; r < p_.outputs; ++r)
      for (int sweep = 0; sweep < kSweeps; ++sweep) {
        bool moved = false;
        for (std::int64_t k = 0; k < p_.depth; ++k) moved |= move(q, r, k);
        if (!moved) break;
      }
  }

 private:
  float part(std::size_t i) const { return std::clamp((kHigh - kLow) / (1 + std::exp(-v_[i])) + kLow, 0.0f, 1.0f); }

  /// What one step of every weight of a row, independent of each other, would cost: losses in these units weigh the
  /// same against the penalty in every layer.
  std::vector<double> row_scales() const {
    std::vector<double> scales(static_cast<std::size_t>(p_.outputs));
    for (std::int64_t r = 0; r < p_.outputs; ++r) {
      double sum = 0;
      for (std::int64_t k = 0; k < p_.depth; ++k) {
        const double step = static_cast<double>(p_.steps[p_.at(r, k)]);
        sum += step * step * static_cast<double>(p_.qq[static_cast<std::size_t>(k * p_.depth + k)]);
      }
      scales[static_cast<std::size_t>(r)] = sum > 0 ? static_cast<double>(p_.depth) / sum : 0;
    }
    return scales;
  }

  void step(int t, int iterations, const std::vector<double> &scale) {
    std::vector<float> w(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      const float q = std::clamp(down_[i] + part(i), static_cast<float>(p_.lo), static_cast<float>(p_.hi));
      w[i] = (q - static_cast<float>(p_.zeros[i])) * p_.steps[i];
    }
    slope_ = half_slope(p_, w);
    const float progress = (static_cast<float>(t) / static_cast<float>(iterations) - kWarmUp) / (1 - kWarmUp);
    const float beta = kLastBeta + (kFirstBeta - kLastBeta) * (1 - std::max(progress, 0.0f));
    const float mean_left = 1 - std::pow(kMean, static_cast<float>(t + 1));
    const float square_left = 1 - std::pow(kSquare, static_cast<float>(t + 1));
    for (std::size_t i = 0; i < count_; ++i) {
      const float s = 1 / (1 + std::exp(-v_[i])), stretched = (kHigh - kLow) * s + kLow;
      if (stretched <= 0 || stretched >= 1) continue;
      const float q = down_[i] + stretched;
      const bool inside = q > static_cast<float>(p_.lo) && q < static_cast<float>(p_.hi);
      const auto row = i / static_cast<std::size_t>(p_.depth);
      float slope = inside ? 2 * slope_[i] * p_.steps[i] * static_cast<float>(scale[row]) : 0;
      if (progress > 0) {
        const float off = 2 * stretched - 1;
        slope -= kPenalty * 2 * beta * std::copysign(std::pow(std::fabs(off), beta - 1), off);
      }
      slope *= (kHigh - kLow) * s * (1 - s);
      mean_[i] = kMean * mean_[i] + (1 - kMean) * slope;
      square_[i] = kSquare * square_[i] + (1 - kSquare) * slope * slope;
      v_[i] -= kRate * (mean_[i] / mean_left) / (std::sqrt(square_[i] / square_left) + kTiny);
    }
  }

  bool move(std::vector<std::int64_t> &q, std::int64_t r, std::int64_t k) {
    const std::size_t i = p_.at(r, k);
    const float *curve = &p_.qq[static_cast<std::size_t>(k * p_.depth)];
    const std::int64_t by = slope_[i] > 0 ? -1 : 1;
    const auto nearest = static_cast<std::int64_t>(down_[i]);
    if (q[i] + by < std::max(p_.lo, nearest) || q[i] + by > std::min(p_.hi, nearest + 1)) return false;
    const float d = static_cast<float>(by) * p_.steps[i];
    if (2 * d * slope_[i] + d * d * curve[k] >= 0) return false;
    q[i] += by;
    for (std::int64_t j = 0; j < p_.depth; ++j) slope_[p_.at(r, j)] += d * curve[j];
    return true;
  }

  const RoundingProblem &p_;
  std::size_t count_;
  std::vector<float> down_, v_, mean_, square_, slope_;
};

}  // namespace

std::vector<std::int64_t> learn_rounding(const RoundingProblem &problem, int iterations) {
  Learner learner(problem);
  std::vector<std::int64_t> learned = learner.learn(iterations);
  learner.descend(learned);
  keep_better_rows(problem, learned);
  return learned;
}

}  // namespace qtn::quant
