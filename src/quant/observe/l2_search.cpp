// SPDX-License-Identifier: Apache-2.0
// Every rounding to float32 below is one that PyTorch's tensors make; scales agree bit for bit because they do.
#include "quant/observe/l2_search.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace qtn::quant {
namespace {

float cube(float v) { return v * v * v; }

/// Squared error of values spread evenly between two distances from the value they are rounded to.
float spread(float begin, float end, float density) { return density * ((cube(end) - cube(begin)) / 3.0f); }

class Histogram {
 public:
  Histogram(std::span<const float> counts, float min, float max, double levels)
      : counts_(counts),
        width_((static_cast<double>(max) - static_cast<double>(min)) / static_cast<double>(counts.size())),
        levels_(levels) {}

  /// Error of quantizing everything to `levels` steps over the bins [start, end].
  double error(std::int64_t start, std::int64_t end) const {
    const double step = width_ * static_cast<double>(end - start + 1) / levels_;
    if (step == 0) return 0;
    const auto width = static_cast<float>(width_), step_f = static_cast<float>(step),
               half = static_cast<float>(step / 2);
    double sum = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      const float density = counts_[i] / width;
      const float begin = static_cast<float>(static_cast<std::int64_t>(i) - start) * width;
      const float finish = begin + width;
      const float first = level_of(begin, step_f), last = level_of(finish, step_f);
      float norm = spread(begin - (first + 0.5f) * step_f, half, density);
      norm += (last - first - 1.0f) * spread(-half, half, density);
      norm += spread(-half, finish - (last * step_f + half), density);
      sum += static_cast<double>(norm);
    }
    return static_cast<double>(static_cast<float>(sum));
  }

 private:
  float level_of(float at, float step) const {
    // The quotient of two float32 is exact enough in double to floor like an exact one.
    const double level = std::floor(static_cast<double>(at) / static_cast<double>(step));
    return static_cast<float>(std::clamp(level, 0.0, levels_ - 1));
  }

  std::span<const float> counts_;
  double width_, levels_;
};

}  // namespace

ClipRange l2_search(std::span<const float> histogram, float min, float max, double levels) {
  constexpr double kStep = 1e-5;
  std::vector<float> cumulative;
  double running = 0;
  for (const float count : histogram) cumulative.push_back(static_cast<float>(running += static_cast<double>(count)));
  const auto total = static_cast<double>(static_cast<float>(running));

  const Histogram source(histogram, min, max, levels);
  const auto below = [&](std::int64_t bin, double quantile) {
    return cumulative[static_cast<std::size_t>(bin)] < static_cast<float>(quantile * total);
  };
  const auto above = [&](std::int64_t bin, double quantile) {
    return cumulative[static_cast<std::size_t>(bin)] > static_cast<float>(quantile * total);
  };

  double alpha = 0, beta = 1, least = std::numeric_limits<double>::infinity();
  std::int64_t start = 0, end = static_cast<std::int64_t>(histogram.size()) - 1;
  while (alpha < beta) {
    const double next_alpha = alpha + kStep, next_beta = beta - kStep;
    std::int64_t l = start, r = end;
    while (l < end && below(l, next_alpha)) ++l;
    while (r > start && above(r, next_beta)) --r;
    std::int64_t next_start = start, next_end = end;
    if (l - start > end - r) {
      next_start = l;
      alpha = next_alpha;
    } else {
      next_end = r;
      beta = next_beta;
    }
    if (next_start == start && next_end == end) continue;
    const double error = source.error(next_start, next_end);
    if (error > least) break;
    least = error;
    start = next_start;
    end = next_end;
  }
  const float width = (max - min) / static_cast<float>(histogram.size());
  return {min + width * static_cast<float>(start), min + width * static_cast<float>(end + 1)};
}

}  // namespace qtn::quant
