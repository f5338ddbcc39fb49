// SPDX-License-Identifier: Apache-2.0
#include "quant/observe/calibration_histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "quant/observe/counting.hpp"
#include "quant/observe/kinds.hpp"

namespace qtn::quant {
namespace {

/// So small that bins as wide are still apart in float32.
constexpr float kLeast = std::numeric_limits<float>::min();

/// numpy.linspace in float32.
std::vector<double> spread(float first, float last, std::size_t bins) {
  const float step = (last - first) / static_cast<float>(bins);
  std::vector<double> edges;
  for (std::size_t i = 0; i < bins; ++i) edges.push_back(static_cast<double>(static_cast<float>(i) * step + first));
  edges.push_back(static_cast<double>(last));
  return edges;
}

bool ascending(const std::vector<double> &edges) {
  return std::adjacent_find(edges.begin(), edges.end(), std::greater_equal<>()) == edges.end();
}

/// numpy.floor_divide of positive float32: not the floor of the quotient, which is rounded already.
float floor_divide(float a, float b) { return std::nearbyint((a - std::fmod(a, b)) / b); }

/// The smallest float32 that is not below `edge`.
float least_above(double edge) {
  const auto nearest = static_cast<float>(edge);
  return static_cast<double>(nearest) < edge ? std::nextafter(nearest, std::numeric_limits<float>::infinity())
                                             : nearest;
}

/// All bits or none.
std::int32_t mask(bool truth) { return -static_cast<std::int32_t>(truth); }

/// Finds the slot of a value between edges. They are about equally far apart: a value that is not very near to one has the
/// slot that its place says, any other that one or a neighbour.
class EdgeFinder {
 public:
  explicit EdgeFinder(const std::vector<double> &edges)
      : first_(static_cast<float>(edges.front())),
        per_bin_(static_cast<float>(std::min(static_cast<double>(edges.size() - 1) / (edges.back() - edges.front()),
                                             static_cast<double>(std::numeric_limits<float>::max())))),
        last_(static_cast<float>(edges.size() - 2)) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    least_.push_back(-kInfinity);
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) least_.push_back(least_above(edges[i]));
    least_.push_back(kInfinity);
    near_ = nearness(edges);
    zero_ = static_cast<std::int32_t>(settle(0, slot_at(-first_ * per_bin_, last_)));
  }

  /// Written so that it becomes vectors: no branches, and comparisons as masks.
  std::int32_t guess(float value) const {
    const float place = (value - first_) * per_bin_;
    const float above = place > 0 ? place : 0.0f, inside = above < last_ ? above : last_;
    const auto bin = static_cast<std::int32_t>(inside);
    const float beyond = inside - static_cast<float>(bin);
    const std::int32_t at_edge = mask(beyond < near_) | mask(beyond > 1 - near_), is_zero = mask(value == 0);
    return (((bin + 1) ^ (at_edge & mask(place < last_ + near_))) & ~is_zero) | (zero_ & is_zero);
  }

  std::size_t settle(float value, std::int32_t guess) const {
    auto slot = static_cast<std::size_t>(guess);
    while (value < least_[slot]) --slot;
    while (value >= least_[slot + 1]) ++slot;
    return slot;
  }

 private:
  /// How far a place, as floats compute it, is from where it is between the edges, at most.
  float nearness(const std::vector<double> &edges) const {
    double farthest = 0;
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const double place = (edges[i] - static_cast<double>(first_)) * static_cast<double>(per_bin_);
      farthest = std::max(farthest, std::fabs(place - static_cast<double>(i)));
    }
    // The difference, the product, and adding the nearness itself each round to half a unit of the last of 24 bits.
    const double rounding =
        static_cast<double>(edges.size()) * 4 * static_cast<double>(std::numeric_limits<float>::epsilon());
    return static_cast<float>(farthest + rounding);
  }

  std::vector<float> least_;  ///< of each slot, and infinity
  float first_, per_bin_, last_;
  float near_;         ///< in bins
  std::int32_t zero_;  ///< its slot: the most frequent value often lies on an edge
};

/// Counts each value once, or `weights` times.
template <class Guess, class Settle>
void count(std::span<const float> values, std::span<const std::uint64_t> weights, std::span<std::uint64_t> counts,
           const Guess &guess, const Settle &settle) {
  if (weights.empty()) count_values(values, counts, guess, settle);
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (const std::size_t slot = settled(values[i], guess(values[i]), settle); slot > 0) counts[slot - 1] += weights[i];
}

/// Each pair of bins becomes one. The count of bins is even.
void join_pairs(std::vector<std::uint64_t> &counts) {
  for (std::size_t i = 0; i < counts.size(); i += 2) counts[i / 2] = counts[i] + counts[i + 1];
  counts.resize(counts.size() / 2);
}

}  // namespace

void CalibrationHistogram::add(std::span<const float> values) {
  const kernels::Extent ends = extent_of(values.data(), values.size());
  place(values, {}, ends.min, ends.max);
}

void CalibrationHistogram::add(const CalibrationHistogram &other) {
  if (empty()) {
    *this = other;
    return;
  }
  std::vector<float> middles;
  for (std::size_t i = 0; i < other.counts_.size(); ++i)
    middles.push_back(
        static_cast<float>((static_cast<double>(other.edge(i)) + static_cast<double>(other.edge(i + 1))) / 2));
  place(middles, other.counts_, other.min_, other.max_);
}

void CalibrationHistogram::place(std::span<const float> values, std::span<const std::uint64_t> weights, float min,
                                 float max) {
  const float amax = std::max(-min, max);
  if (!std::isfinite(2 * amax * static_cast<float>(limit())))
    fail(QTN_EINVAL, "observer: the range [", min, ", ", max, "] is too wide for a histogram");
  CalibrationHistogram next = *this;
  const std::vector<double> edges = empty() ? next.first_edges(values, amax) : next.grown_edges(amax);
  if (binning_ == Binning::nvidia) {  // torch.histc
    const auto bins = static_cast<float>(next.counts_.size()), top = static_cast<float>(edges.back());
    const auto guess = [=](float v) { return slot_at(std::fabs(v) * bins / top, bins - 1); };
    count(values, weights, next.counts_, guess, kAsGuessed);
  } else {
    const EdgeFinder finder(edges);
    const std::uint32_t bits = binning_ == Binning::onnx_signed ? ~0u : ~0u >> 1;
    const auto seen = [=](float v) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(v) & bits); };
    count(
        values, weights, next.counts_, [&](float v) { return finder.guess(seen(v)); },
        [&](float v, std::int32_t guess) { return finder.settle(seen(v), guess); });
  }
  next.edges_.assign(edges.begin(), edges.end());
  next.min_ = empty() ? min : std::min(min, min_);
  next.max_ = empty() ? max : std::max(max, max_);
  *this = std::move(next);
}

std::vector<double> CalibrationHistogram::first_edges(std::span<const float> values, float amax) {
  const auto bins = static_cast<std::size_t>(bins_);
  counts_.resize(bins);
  const float top = std::max(amax, kLeast * static_cast<float>(bins));  // whose steps are no denormals
  if (binning_ == Binning::nvidia) return spread(0, top, bins);
  if (binning_ == Binning::onnx_signed) return amax == 0 ? spread(-0.5f, 0.5f, bins) : spread(-top, top, bins);
  float least = amax;
  for (const float v : values) least = std::min(least, std::fabs(v));
  std::vector<double> edges = least == amax ? spread(least - 0.5f, amax + 0.5f, bins) : spread(least, amax, bins);
  // NumPy refuses bins that float32 cannot tell apart.
  return ascending(edges) ? edges : spread(0, top, bins);
}

std::vector<double> CalibrationHistogram::grown_edges(float amax) {
  const bool zeros = binning_ == Binning::onnx_signed && min_ == 0 && max_ == 0;
  if (amax <= (zeros ? 0 : edges_.back())) return {edges_.begin(), edges_.end()};
  // Zeros alone were counted over [-0.5, 0.5], which says nothing of their range.
  if (zeros) {
    const float top = std::max(amax, kLeast * static_cast<float>(counts_.size()));
    return spread(-top, top, counts_.size());
  }
  if (binning_ == Binning::onnx_signed) return grow_signed(amax);
  return binning_ == Binning::nvidia ? grow_nvidia(amax) : grow_absolute(amax);
}

/// numpy.arange from the last edge on, in the steps in which NumPy takes float32 arguments.
std::vector<double> CalibrationHistogram::grow_absolute(float amax) {
  while (static_cast<double>(amax - edges_.back()) / static_cast<double>(edges_[1] - edges_[0]) >
         static_cast<double>(limit()) - static_cast<double>(counts_.size()) - 1) {
    if (counts_.size() % 2 == 1) {
      counts_.push_back(0);
      edges_.push_back(edges_.back() + (edges_[1] - edges_[0]));
    }
    join_pairs(counts_);
    for (std::size_t i = 0; i <= counts_.size(); ++i) edges_[i] = edges_[2 * i];
    edges_.resize(counts_.size() + 1);
  }
  const float width = edges_[1] - edges_[0], start = edges_.back() + width, stop = amax + width;
  const double step = static_cast<double>(start + width) - static_cast<double>(start);
  std::vector<double> edges(edges_.begin(), edges_.end());
  for (float i = 0; i < (stop - start) / width; ++i)
    edges.push_back(static_cast<double>(start) + static_cast<double>(i) * step);
  counts_.resize(edges.size() - 1);
  return edges;
}

std::vector<double> CalibrationHistogram::grow_signed(float amax) {
  float top = edges_.back(), stride = 0, more = 0;
  for (;;) {
    stride = 2 * top / static_cast<float>(counts_.size());
    more = floor_divide(amax - top, stride) + 1;
    if (static_cast<float>(counts_.size()) + 2 * more <= static_cast<float>(limit())) break;
    if (counts_.size() % 4 != 0) {  // so that no pair lies across zero
      counts_.insert(counts_.begin(), 0);
      counts_.push_back(0);
      top += stride;
    }
    join_pairs(counts_);
  }
  top += more * stride;
  counts_.insert(counts_.begin(), static_cast<std::size_t>(more), 0);
  counts_.resize(counts_.size() + static_cast<std::size_t>(more));
  return spread(-top, top, counts_.size());
}

std::vector<double> CalibrationHistogram::grow_nvidia(float amax) {
  float width = edges_[1];
  for (; static_cast<double>(amax) / static_cast<double>(width) > static_cast<double>(limit()) - 1; width *= 2) {
    if (counts_.size() % 2 == 1) counts_.push_back(0);
    join_pairs(counts_);
  }
  counts_.resize(std::max(counts_.size(), static_cast<std::size_t>(std::ceil(amax / width))));
  const double count = std::ceil(static_cast<double>(amax + width) / static_cast<double>(width));
  std::vector<double> edges;
  for (float i = 0; static_cast<double>(i) < count; ++i) edges.push_back(static_cast<double>(i * width));
  return edges;
}

float CalibrationHistogram::quantile(double share) const {
  const auto total = static_cast<double>(std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0}));
  std::size_t at = 0;
  for (double reached = 0; at < counts_.size(); ++at) {
    reached += static_cast<double>(counts_[at]) / total;
    if (reached >= share) break;
  }
  return edge(at);
}

void CalibrationHistogram::write(ByteWriter &out) const {
  out.f32(min_);
  out.f32(max_);
  out.f32s(edges_);
  out.u64(counts_.size());
  for (const std::uint64_t count : counts_) out.u64(count);
}

void CalibrationHistogram::read(ByteReader &in) {
  CalibrationHistogram h(binning_, bins_);
  h.min_ = in.f32();
  h.max_ = in.f32();
  h.edges_ = in.f32s();
  h.counts_.resize(in.length(in.u64(), 8));
  for (std::uint64_t &count : h.counts_) count = in.u64();
  if (h.counts_.empty() && h.edges_.empty()) return;
  const std::size_t bins = h.counts_.size(), edges = h.edges_.size();
  const bool fits = binning_ == Binning::nvidia ? edges >= bins && edges <= bins + 2 : edges == bins + 1;
  if (bins == 0 || bins > limit() || edges < 2 || !fits || (binning_ == Binning::onnx_signed && bins % 2 == 1))
    in.broken("the numbers of bins and edges do not fit the settings");
  if (!std::isfinite(h.min_) || !std::isfinite(h.max_) || h.min_ > h.max_)
    in.broken("the range is not finite and ordered");
  const bool finite = std::all_of(h.edges_.begin(), h.edges_.end(), [](float e) { return std::isfinite(e); });
  if (!finite || !std::is_sorted(h.edges_.begin(), h.edges_.end()) || h.edges_[0] == h.edges_[1] ||
      h.edges_.back() < kLeast || (binning_ == Binning::nvidia && h.edges_[0] != 0))
    in.broken("the edges do not ascend");
  *this = std::move(h);
}

}  // namespace qtn::quant
