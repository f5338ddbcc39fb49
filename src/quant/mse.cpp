// SPDX-License-Identifier: Apache-2.0
// "mse": a histogram that keeps its size while its range grows, searched for the clipping range of least squared error.
//
// Bins are [i * 2^e, (i + 1) * 2^e). When the values no longer fit the number of bins, e grows and pairs of bins become
// one. Counts therefore depend on the values alone, not on their order or on how they were spread over observers:
// merging is exact.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "quant/counting.hpp"
#include "quant/kinds.hpp"

namespace qtn::quant {
namespace {

/// The values other than zero. Zero is on every grid, so it adds no error.
struct Bins {
  int exponent = 0;
  std::int64_t first = 0;             ///< index i of counts[0]
  std::vector<std::uint64_t> counts;  ///< empty: nothing seen
  float min = 0, max = 0;             ///< exact ends of what was seen
};

std::int64_t index_of(float value, int exponent) {
  return static_cast<std::int64_t>(std::floor(std::ldexp(static_cast<double>(value), -exponent)));
}

/// The finest bins with which [min, max] takes at most `limit` of them, and indexes stay small.
int exponent_for(float min, float max, std::int64_t limit) {
  int exponent = std::ilogb(std::max(std::fabs(min), std::fabs(max))) - 30;
  while (index_of(max, exponent) - index_of(min, exponent) >= limit) ++exponent;
  return exponent;
}

struct Nonzero {
  float min, max;       ///< of the values other than zero; min above max where there are none
  std::uint64_t zeros;  ///< how many others there are
};

/// Without branches on values, which nobody could predict.
Nonzero nonzero(std::span<const float> values) {
  const kernels::Extent all = extent_of(values.data(), values.size());
  std::uint32_t least = UINT32_MAX;  // magnitude, less one so that zero is the largest
  std::uint64_t zeros = 0;
  for (const float v : values) {
    const std::uint32_t magnitude = (std::bit_cast<std::uint32_t>(v) & 0x7fffffff) - 1;
    least = magnitude < least ? magnitude : least;
    zeros += magnitude == UINT32_MAX;
  }
  if (zeros == values.size()) return {1, -1, zeros};
  const auto nearest = std::bit_cast<float>(least + 1);
  return {all.min < 0 ? all.min : nearest, all.max > 0 ? all.max : -nearest, zeros};
}

Bins widened(const Bins &bins, float min, float max, std::int64_t limit) {
  Bins wide;
  wide.min = bins.counts.empty() ? min : std::min(min, bins.min);
  wide.max = bins.counts.empty() ? max : std::max(max, bins.max);
  wide.exponent = exponent_for(wide.min, wide.max, limit);
  wide.first = index_of(wide.min, wide.exponent);
  wide.counts.resize(static_cast<std::size_t>(index_of(wide.max, wide.exponent) - wide.first + 1));
  for (std::size_t i = 0; i < bins.counts.size(); ++i) {
    if (bins.counts[i] == 0) continue;
    const int shift = std::min(wide.exponent - bins.exponent, 63);
    const std::int64_t at = (bins.first + static_cast<std::int64_t>(i)) >> shift;
    wide.counts[static_cast<std::size_t>(at - wide.first)] += bins.counts[i];
  }
  return wide;
}

struct Weighted {
  double value, count;
};

std::vector<Weighted> centres(const Bins &bins) {
  std::vector<Weighted> points;
  for (std::size_t i = 0; i < bins.counts.size(); ++i) {
    if (bins.counts[i] == 0) continue;
    const double centre =
        std::ldexp(static_cast<double>(bins.first + static_cast<std::int64_t>(i)) + 0.5, bins.exponent);
    const double inside = std::clamp(centre, static_cast<double>(bins.min), static_cast<double>(bins.max));
    points.push_back({inside, static_cast<double>(bins.counts[i])});
  }
  return points;
}

class Search {
 public:
  Search(const ObserverSettings &settings, std::vector<Weighted> points)
      : settings_(settings), points_(std::move(points)) {}

  /// The range [lo, hi] within [min, max] whose grid leaves the least squared error; of equals the widest.
  std::pair<double, double> best(double min, double max) {
    lo_ = std::min(min, 0.0);
    hi_ = std::max(max, 0.0);
    if (is_symmetric(settings_.scheme)) {
      hi_ = std::max(-lo_, hi_);
      lo_ = -hi_;
      const double full = hi_;
      least_ = error(lo_, hi_);
      for (int i = kSteps - 1; i > 0; --i) consider(-full * i / kSteps, full * i / kSteps);
      return {lo_, hi_};
    }
    const double full_lo = lo_, full_hi = hi_;
    least_ = error(lo_, hi_);
    // One end at a time: the error is far from convex in both, but close enough along each.
    for (int round = 0; round < 3; ++round) {
      const double before = least_;
      if (full_hi > 0)
        for (int i = kSteps - 1; i >= 0; --i) consider(lo_, full_hi * i / kSteps);
      if (full_lo < 0)
        for (int i = kSteps - 1; i >= 0; --i) consider(full_lo * i / kSteps, hi_);
      if (least_ == before) break;
    }
    return {lo_, hi_};
  }

 private:
  static constexpr int kSteps = 128;

  void consider(double lo, double hi) {
    if (lo == hi) return;
    const double now = error(lo, hi);
    if (now >= least_) return;
    least_ = now;
    lo_ = lo;
    hi_ = hi;
  }

  double error(double lo, double hi) const {
    const ScaleZero grid = choose_scale(settings_.dtype, is_symmetric(settings_.scheme), lo, hi, settings_.choose);
    const IntegerRange range = integers(settings_);
    const auto zero = static_cast<double>(grid.zero_point);
    // The integers that [lo, hi] maps to: all of the type's, or fewer under reduce_range and narrow_range.
    const double first = std::max(std::nearbyint(lo / grid.scale), static_cast<double>(range.lo) - zero);
    const double last = std::min(std::nearbyint(hi / grid.scale), static_cast<double>(range.hi) - zero);
    double sum = 0;
    for (const Weighted &p : points_) {
      const double q = std::min(std::max(std::nearbyint(p.value / grid.scale), first), last);
      const double e = q * grid.scale - p.value;
      sum += p.count * e * e;
    }
    return sum;
  }

  const ObserverSettings &settings_;
  std::vector<Weighted> points_;
  double lo_ = 0, hi_ = 0, least_ = 0;
};

class Mse final : public Observer {
 public:
  explicit Mse(const ObserverSettings &settings) : Observer(settings) {}
  std::unique_ptr<Observer> clone() const override { return std::make_unique<Mse>(*this); }
  std::string_view kind() const override { return "mse"; }
  bool empty() const override { return !seen_; }

 protected:
  void take(const Tensor &x) override {
    const std::span<const float> values(x.as<const float>(), static_cast<std::size_t>(x.count()));
    if (const Nonzero seen = nonzero(values); seen.min <= seen.max) {
      Bins wide = widened(bins_, seen.min, seen.max, settings().bins);
      const auto place = [scale = std::ldexp(1.0, -wide.exponent), first = wide.first](float v) {
        const double at = static_cast<double>(v) * scale;  // below 2^31, whatever v
        const auto towards_zero = static_cast<std::int64_t>(at);
        return static_cast<std::size_t>(towards_zero - (at < static_cast<double>(towards_zero)) - first);
      };
      count_values(values, wide.counts, place);
      if (place(0) < wide.counts.size()) wide.counts[place(0)] -= seen.zeros;
      bins_ = std::move(wide);
    }
    seen_ = true;
  }

  void take_from(const Observer &other) override {
    const Bins &from = static_cast<const Mse &>(other).bins_;
    if (!from.counts.empty()) {
      Bins wide = widened(bins_, from.min, from.max, settings().bins);
      const Bins same = widened(from, wide.min, wide.max, settings().bins);
      for (std::size_t i = 0; i < wide.counts.size(); ++i) wide.counts[i] += same.counts[i];
      bins_ = std::move(wide);
    }
    seen_ = true;
  }

  QuantizerPtr choose() const override {
    const auto [lo, hi] = Search(settings(), centres(bins_)).best(bins_.min, bins_.max);
    return choose_quantizer(settings().dtype, settings().scheme, settings().axis, std::span(&lo, 1), std::span(&hi, 1),
                            settings().choose);
  }

  void write(ByteWriter &out) const override {
    out.u8(seen_);
    out.f32(bins_.min);
    out.f32(bins_.max);
    out.u64(bins_.counts.size());
    for (const std::uint64_t count : bins_.counts) out.u64(count);
  }

  /// Exponent and first index follow from the range, so a file cannot contradict it.
  void read(ByteReader &in) override {
    seen_ = in.u8() != 0;
    const float min = in.f32(), max = in.f32();
    const std::size_t size = in.length(in.u64(), 8);
    if (size == 0) return;
    if (!seen_ || !std::isfinite(min) || !std::isfinite(max) || min > max || (min == 0 && max == 0))
      in.broken("the range of the values is not finite and ordered");
    Bins bins = widened({}, min, max, settings().bins);
    if (bins.counts.size() != size) in.broken("the number of bins does not fit the range");
    for (std::uint64_t &count : bins.counts) count = in.u64();
    bins_ = std::move(bins);
  }

 private:
  Bins bins_;
  bool seen_ = false;
};

}  // namespace

std::unique_ptr<Observer> make_mse(const ObserverSettings &settings) { return std::make_unique<Mse>(settings); }

}  // namespace qtn::quant
