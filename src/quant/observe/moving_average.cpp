// SPDX-License-Identifier: Apache-2.0
// "moving_average": exponential means of each batch's smallest and largest value, so that an odd batch does not decide.
#include <algorithm>
#include <utility>

#include "quant/observe/kinds.hpp"

namespace qtn::quant {
namespace {

class MovingAverage final : public Observer {
 public:
  explicit MovingAverage(const ObserverSettings &settings) : Observer(settings) {}
  std::unique_ptr<Observer> clone() const override { return std::make_unique<MovingAverage>(*this); }
  std::string_view kind() const override { return "moving_average"; }
  bool empty() const override { return batches_ == 0; }

 protected:
  void take(const Tensor &x) override {
    Ranges now = measure(x, settings());
    if (empty()) {
      ranges_ = std::move(now);
    } else {
      move_towards(ranges_, now, static_cast<float>(settings().averaging_constant));
    }
    count(1);
  }

  /// The order of batches is lost between observers, so each counts by how many it saw.
  void take_from(const Observer &other) override {
    const auto &from = static_cast<const MovingAverage &>(other);
    if (empty()) {
      Ranges copy = from.ranges_;  // both vectors or none
      ranges_ = std::move(copy);
    } else {
      check_channels(ranges_, from.ranges_);
      const double share =
          static_cast<double>(from.batches_) / (static_cast<double>(batches_) + static_cast<double>(from.batches_));
      for (std::size_t c = 0; c < ranges_.size(); ++c) {
        ranges_.mins[c] = mean(ranges_.mins[c], from.ranges_.mins[c], share);
        ranges_.maxs[c] = mean(ranges_.maxs[c], from.ranges_.maxs[c], share);
      }
    }
    count(from.batches_);
  }

  QuantizerPtr choose() const override { return choose_from(ranges_, settings()); }

  void write(ByteWriter &out) const override {
    out.u64(batches_);
    write_ranges(out, ranges_);
  }

  void read(ByteReader &in) override {
    batches_ = in.u64();
    ranges_ = read_ranges(in, settings());
    if ((batches_ == 0) != (ranges_.size() == 0)) in.broken("batches and ranges disagree");
  }

 private:
  /// A file may bring any number of batches, of which the largest stays.
  void count(std::uint64_t batches) { batches_ += std::min(batches, ~batches_); }

  static float mean(float a, float b, double share_of_b) {
    return static_cast<float>(static_cast<double>(a) * (1.0 - share_of_b) + static_cast<double>(b) * share_of_b);
  }

  Ranges ranges_;
  std::uint64_t batches_ = 0;
};

}  // namespace

std::unique_ptr<Observer> make_moving_average(const ObserverSettings &settings) {
  return std::make_unique<MovingAverage>(settings);
}

}  // namespace qtn::quant
