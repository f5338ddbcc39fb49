// SPDX-License-Identifier: Apache-2.0
// "entropy": ONNX Runtime's EntropyCalibrater: the range whose histogram loses least information (Kullback-Leibler
// divergence) when it is reduced to 128 levels. Its sums are in float32; here they are in double.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/elementary.hpp"
#include "quant/observe/calibrator.hpp"

namespace qtn::quant {
namespace {

constexpr std::size_t kLevels = 128;

/// Zeros become a little more, all else a little less; false where nothing would be left.
bool smooth(std::vector<double> &values) {
  constexpr double kMore = 1e-4;
  const auto zeros = static_cast<double>(std::count(values.begin(), values.end(), 0.0));
  const double less = kMore * zeros / (static_cast<double>(values.size()) - zeros);
  for (double &v : values) v = v == 0 ? kMore : v - less;
  return less < std::numeric_limits<double>::infinity() &&
         std::all_of(values.begin(), values.end(), [](double v) { return v > 0; });
}

double divergence(const std::vector<double> &p, const std::vector<double> &q) {
  const double p_sum = std::accumulate(p.begin(), p.end(), 0.0), q_sum = std::accumulate(q.begin(), q.end(), 0.0);
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += p[i] / p_sum * logarithm(p[i] / p_sum / (q[i] / q_sum));
  return sum;
}

/// The loss of the bins [begin, end), which take the counts outside into their ends, from the same in 128 levels.
double loss(const std::vector<std::uint64_t> &counts, std::size_t begin, std::size_t end) {
  const auto at = [&](std::size_t i) { return counts.begin() + static_cast<std::ptrdiff_t>(i); };
  std::vector<double> p(at(begin), at(end)), q(end - begin);
  p.front() += static_cast<double>(std::accumulate(counts.begin(), at(begin), std::uint64_t{0}));
  p.back() += static_cast<double>(std::accumulate(at(end), counts.end(), std::uint64_t{0}));
  const std::size_t merged = q.size() / kLevels;
  for (std::size_t level = 0; level < kLevels; ++level) {
    const std::size_t first = level * merged, last = first + merged;
    std::uint64_t filled = 0;
    for (std::size_t i = first; i < last; ++i) filled += p[i] != 0;
    if (filled == 0) continue;
    const std::size_t summed = level + 1 == kLevels ? end : begin + last;
    const std::uint64_t sum = std::accumulate(at(begin + first), at(summed), std::uint64_t{0});
    std::fill(q.begin() + static_cast<std::ptrdiff_t>(first), q.begin() + static_cast<std::ptrdiff_t>(last),
              static_cast<double>(sum / filled));
  }
  return smooth(p) && smooth(q) ? divergence(p, q) : std::numeric_limits<double>::infinity();
}

Ranges least_loss(const CalibrationHistogram &histogram, const ObserverSettings &) {
  const std::vector<std::uint64_t> &counts = histogram.counts();
  const std::size_t bins = counts.size(), zero = bins / 2;
  double least = std::numeric_limits<double>::infinity();
  std::size_t begin = zero - kLevels / 2, end = std::min(zero + kLevels / 2 + 1, bins);
  for (std::size_t half = kLevels / 2; half <= zero; ++half) {
    const double now = loss(counts, zero - half, std::min(zero + half + 1, bins));
    if (now >= least) continue;
    least = now;
    begin = zero - half;
    end = std::min(zero + half + 1, bins);
  }
  return within_seen(histogram.edge(begin), histogram.edge(end), histogram);
}

}  // namespace

std::unique_ptr<Observer> make_entropy(const ObserverSettings &settings) {
  need_bins("entropy", settings, kLevels);
  return make_calibrator("entropy", settings, Binning::onnx_signed, least_loss);
}

}  // namespace qtn::quant
