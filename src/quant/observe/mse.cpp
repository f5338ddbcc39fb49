// SPDX-License-Identifier: Apache-2.0
// "mse": counts, searched for the clipping range of least squared error. Zeros are left out: zero is on every grid.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "quant/observe/dyadic_bins.hpp"
#include "quant/observe/kinds.hpp"

namespace qtn::quant {
namespace {

struct Weighted {
  double value, count;
};

std::vector<Weighted> centres(const DyadicBins &bins) {
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
      const double side = lo_ < 0 ? -1 : 0;  // some grids have none below zero
      lo_ = side * hi_;
      const double full = hi_;
      least_ = error(lo_, hi_);
      for (int i = kSteps - 1; i > 0; --i) consider(side * full * i / kSteps, full * i / kSteps);
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
    add(bins_, {x.as<const float>(), static_cast<std::size_t>(x.count())}, settings().bins);
    seen_ = true;
  }

  void take_from(const Observer &other) override {
    add(bins_, static_cast<const Mse &>(other).bins_, settings().bins);
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
    DyadicBins bins = widened({}, min, max, settings().bins);
    if (bins.counts.size() != size) in.broken("the number of bins does not fit the range");
    for (std::uint64_t &count : bins.counts) count = in.u64();
    bins_ = std::move(bins);
  }

 private:
  DyadicBins bins_;
  bool seen_ = false;
};

}  // namespace

std::unique_ptr<Observer> make_mse(const ObserverSettings &settings) { return std::make_unique<Mse>(settings); }

}  // namespace qtn::quant
