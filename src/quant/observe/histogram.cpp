// SPDX-License-Identifier: Apache-2.0
// "histogram": PyTorch's HistogramObserver as of 2.4: a histogram over [min, max] that is resampled when the range
// grows, and an L2 search for the clipping range. Arithmetic follows PyTorch's in float32.
#include <algorithm>
#include <cmath>
#include <utility>

#include "quant/observe/counting.hpp"
#include "quant/observe/kinds.hpp"
#include "quant/observe/l2_search.hpp"

namespace qtn::quant {
namespace {

/// torch.histc: the slot of a value among equal bins over [min, max].
class Placer {
 public:
  Placer(float min, float max, std::size_t bins) : min_(min), width_(max - min), bins_(static_cast<float>(bins)) {
    if (width_ > 0) return;
    min_ -= 1;
    width_ = (max + 1) - min_;
    if (width_ > 0) return;
    width_ = 1;  // one value, so large that it swallows 1
    shift_ = static_cast<float>(bins / 2);
  }
  std::int32_t operator()(float value) const { return slot_at((value - min_) * bins_ / width_ + shift_, bins_ - 1); }

 private:
  float min_, width_, bins_, shift_ = 0;
};

/// torch.linspace: from both ends towards the middle.
float linspace(float start, float end, std::size_t steps, std::size_t i) {
  const float step = (end - start) / static_cast<float>(steps - 1);
  return i < steps / 2 ? start + step * static_cast<float>(i) : end - step * static_cast<float>(steps - i - 1);
}

struct Counts {
  float min = 0, max = 0;
  std::vector<float> bins;  ///< empty: nothing seen
};

/// The histogram over a range that contains its own: each bin is cut in 16 and the pieces go where their middles lie.
std::vector<float> resampled(const Counts &from, float min, float max) {
  const std::size_t bins = from.bins.size();
  if (from.min == min && from.max == max) return from.bins;
  std::vector<float> to(bins);
  if (from.min == from.max) {
    float sum = 0;
    for (const float count : from.bins) sum += count;
    to[Placer(min, max, bins)(from.min) - 1] = sum;
    return to;
  }
  constexpr std::size_t kPieces = 16;
  const std::size_t pieces = bins * kPieces;
  const float half = 0.5f * ((from.max - from.min) / static_cast<float>(pieces));
  std::vector<float> edges;
  for (std::size_t i = 0; i <= bins; ++i) edges.push_back(linspace(min, max, bins + 1, i));
  for (std::size_t i = 0; i < pieces; ++i) {
    const float middle = linspace(from.min, from.max, pieces + 1, i) + half;
    const auto after = static_cast<std::size_t>(std::upper_bound(edges.begin(), edges.end(), middle) - edges.begin());
    const std::size_t at = std::min(after == 0 ? 0 : after - 1, bins - 1);
    to[at] += from.bins[i / kPieces] / static_cast<float>(kPieces);
  }
  return to;
}

class HistogramObserver final : public Observer {
 public:
  explicit HistogramObserver(const ObserverSettings &settings) : Observer(settings) {}
  std::unique_ptr<Observer> clone() const override { return std::make_unique<HistogramObserver>(*this); }
  std::string_view kind() const override { return "histogram"; }
  bool empty() const override { return counts_.bins.empty(); }

 protected:
  void take(const Tensor &x) override {
    const Ranges range = measure(x, settings());
    Counts now{range.mins[0], range.maxs[0], std::vector<float>(bins())};
    if (!empty()) {
      now.min = std::min(now.min, counts_.min);
      now.max = std::max(now.max, counts_.max);
    }
    check_width(now);
    const Placer place(now.min, now.max, bins());
    std::vector<std::uint64_t> counts(bins());
    count_values({x.as<const float>(), static_cast<std::size_t>(x.count())}, counts, place, kAsGuessed);
    for (std::size_t i = 0; i < counts.size(); ++i) now.bins[i] = static_cast<float>(counts[i]);
    add(now, counts_);
    counts_ = std::move(now);
  }

  void take_from(const Observer &other) override {
    const Counts &from = static_cast<const HistogramObserver &>(other).counts_;
    if (empty()) {
      counts_ = from;
      return;
    }
    Counts sum{std::min(counts_.min, from.min), std::max(counts_.max, from.max), std::vector<float>(bins())};
    check_width(sum);
    add(sum, counts_);
    add(sum, from);
    counts_ = std::move(sum);
  }

  QuantizerPtr choose() const override {
    const IntegerRange range = integer_range(settings().dtype);
    const auto levels = static_cast<double>(range.hi - range.lo + 1);
    const ClipRange clip = l2_search(counts_.bins, counts_.min, counts_.max, levels);
    return choose_from({{std::min(clip.min, clip.max)}, {clip.max}}, settings());
  }

  void write(ByteWriter &out) const override {
    out.f32(counts_.min);
    out.f32(counts_.max);
    out.f32s(counts_.bins);
  }

  void read(ByteReader &in) override {
    Counts counts;
    counts.min = in.f32();
    counts.max = in.f32();
    counts.bins = in.f32s();
    if (counts.bins.empty()) return;
    if (counts.bins.size() != bins()) in.broken("the number of bins is not that of the settings");
    if (!std::isfinite(counts.min) || !std::isfinite((counts.max - counts.min) * static_cast<float>(bins())) ||
        counts.min > counts.max)
      in.broken("the range is not finite and ordered");
    for (const float count : counts.bins)
      if (!(count >= 0) || !std::isfinite(count)) in.broken("a count is negative or not finite");
    counts_ = std::move(counts);
  }

 private:
  std::size_t bins() const { return static_cast<std::size_t>(settings().bins); }

  /// The place of a value is computed in float32, as PyTorch does.
  static void check_width(const Counts &counts) {
    if (!std::isfinite((counts.max - counts.min) * static_cast<float>(counts.bins.size())))
      fail(QTN_EINVAL, "observer: the range [", counts.min, ", ", counts.max, "] is too wide for a histogram");
  }

  static void add(Counts &to, const Counts &from) {
    if (from.bins.empty()) return;
    const std::vector<float> more = resampled(from, to.min, to.max);
    for (std::size_t i = 0; i < more.size(); ++i) to.bins[i] += more[i];
  }

  Counts counts_;
};

}  // namespace

std::unique_ptr<Observer> make_histogram(const ObserverSettings &settings) {
  return std::make_unique<HistogramObserver>(settings);
}

}  // namespace qtn::quant
