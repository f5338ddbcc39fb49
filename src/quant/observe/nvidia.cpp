// SPDX-License-Identifier: Apache-2.0
// "nvidia_percentile", "nvidia_entropy", "nvidia_mse": the searches of NVIDIA's HistogramCalibrator for an amax.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/elementary.hpp"
#include "base/whole_number.hpp"
#include "quant/observe/calibrator.hpp"

namespace qtn::quant {
namespace {

constexpr std::int64_t kFirstBin = 128;

Ranges range_of(float amax, const CalibrationHistogram &histogram) {
  Ranges range;
  add_magnitude(range, amax, histogram.min() < 0);
  return range;
}

/// How many integers stand for magnitudes: half of the type's, or all where the grid is spread over one side.
std::size_t magnitude_levels(const CalibrationHistogram &histogram, const ObserverSettings &settings) {
  const IntegerRange range = integers(settings);
  const bool one_sided = histogram.min() >= 0 && (!is_symmetric(settings.scheme) ||
                                                  (settings.choose.numerics == Numerics::nvidia && range.lo == 0));
  const auto all = static_cast<std::size_t>(range.hi - range.lo + 1);
  return one_sided ? all : all / 2;
}

Ranges percentile(const CalibrationHistogram &histogram, const ObserverSettings &settings) {
  return range_of(histogram.quantile(settings.percentile / 100), histogram);
}

/// Bins with the logarithms of their counts, which every candidate of a search needs again.
struct LoggedBins {
  std::vector<std::uint64_t> counts;
  std::vector<double> logs;

  explicit LoggedBins(std::vector<std::uint64_t> bins) : counts(std::move(bins)) {
    for (const std::uint64_t count : counts) logs.push_back(count ? logarithm(static_cast<double>(count)) : 0);
  }
};

/// Kullback-Leibler divergence of the first `count` bins, the last of which takes the `tail`, from the same in few
/// levels: the bins of a level that are not empty have their mean.
double divergence(const LoggedBins &bins, std::size_t count, std::uint64_t inside, std::uint64_t tail,
                  std::size_t levels) {
  const std::uint64_t last = bins.counts[count - 1];
  if (last == 0 && tail > 0) return std::numeric_limits<double>::infinity();
  double sum = 0, log_mean = 0;
  for (std::size_t begin = 0; begin < count;) {
    const std::size_t level = begin * levels / count;
    const std::size_t end = std::min(((level + 1) * count + levels - 1) / levels, count);
    std::uint64_t in_level = 0, filled = 0;
    for (std::size_t i = begin; i < end; ++i) {
      in_level += bins.counts[i];
      filled += bins.counts[i] != 0;
    }
    if (filled > 0) log_mean = logarithm(static_cast<double>(in_level) / static_cast<double>(filled));
    for (std::size_t i = begin; i < end; ++i) sum += static_cast<double>(bins.counts[i]) * (bins.logs[i] - log_mean);
    begin = end;
  }
  if (last > 0) {  // The tail is a part of the last bin, which the last level does not know of.
    const double whole = static_cast<double>(last + tail);
    sum += whole * (logarithm(whole) - log_mean) - static_cast<double>(last) * (bins.logs[count - 1] - log_mean);
  }
  const auto within = static_cast<double>(inside), total = static_cast<double>(inside + tail);
  return sum / total + logarithm(within / total);
}

Ranges entropy(const CalibrationHistogram &histogram, const ObserverSettings &settings) {
  std::vector<std::uint64_t> counts = histogram.counts();
  counts[0] = counts[1];  // zeros, of which there are often many
  const LoggedBins bins(std::move(counts));
  const std::size_t levels = magnitude_levels(histogram, settings), size = bins.counts.size();
  double least = std::numeric_limits<double>::infinity();
  std::size_t best = size;
  std::uint64_t inside = std::accumulate(bins.counts.begin(), bins.counts.begin() + kFirstBin, std::uint64_t{0});
  std::uint64_t tail = std::accumulate(bins.counts.begin() + kFirstBin, bins.counts.end(), std::uint64_t{0});
  for (std::size_t count = kFirstBin; count <= size; ++count) {
    const double now = divergence(bins, count, inside, tail, levels);
    if (now <= least) {  // of equals the widest
      least = now;
      best = count;
    }
    if (count == size) break;
    inside += bins.counts[count];
    tail -= bins.counts[count];
  }
  return range_of(histogram.edge(best), histogram);
}

/// The middle of a bin that is not empty.
struct Middle {
  float value, count;
};

/// Squared error of quantizing the middles of bins to [0, bound] in steps of amax / bound, in float32.
double squared_error(const std::vector<Middle> &middles, float amax, float bound) {
  constexpr float kVanishing = 1.0f / (1 << 24);  // where the toolkit gives zeros
  const float scale = amax > kVanishing ? bound / amax : 1;
  const float top = amax > kVanishing ? bound : 0;
  double sum = 0;
  for (const Middle &middle : middles) {
    const float error = nearest_whole(std::min(middle.value * scale, top)) / scale - middle.value;
    sum += static_cast<double>(error * error * middle.count);
  }
  return sum;
}

Ranges mse(const CalibrationHistogram &histogram, const ObserverSettings &settings) {
  const std::size_t size = histogram.counts().size();
  const auto middle = [&](std::size_t i) { return (histogram.edge(i + 1) + histogram.edge(i)) / 2; };
  std::vector<Middle> filled;
  for (std::size_t i = 0; i < size; ++i)
    if (histogram.counts()[i]) filled.push_back({middle(i), static_cast<float>(histogram.counts()[i])});
  const auto bound = static_cast<float>(magnitude_levels(histogram, settings) - 1);
  double least = std::numeric_limits<double>::infinity();
  float amax = middle(size - 1);
  for (std::size_t i = kFirstBin; i < size; ++i) {
    const double now = squared_error(filled, middle(i), bound);
    if (now >= least) continue;
    least = now;
    amax = middle(i);
  }
  return range_of(amax, histogram);
}

}  // namespace

std::unique_ptr<Observer> make_nvidia_percentile(const ObserverSettings &settings) {
  return make_calibrator("nvidia_percentile", settings, Binning::nvidia, percentile);
}

std::unique_ptr<Observer> make_nvidia_entropy(const ObserverSettings &settings) {
  need_bins("nvidia_entropy", settings, kFirstBin);
  return make_calibrator("nvidia_entropy", settings, Binning::nvidia, entropy);
}

std::unique_ptr<Observer> make_nvidia_mse(const ObserverSettings &settings) {
  need_bins("nvidia_mse", settings, kFirstBin + 1);
  return make_calibrator("nvidia_mse", settings, Binning::nvidia, mse);
}

}  // namespace qtn::quant
