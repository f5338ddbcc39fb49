// SPDX-License-Identifier: Apache-2.0
// "max": NVIDIA's MaxCalibrator: the largest magnitude ever seen, per tensor or per channel.
#include <algorithm>

#include "quant/observe/kinds.hpp"

namespace qtn::quant {
namespace {

class Max final : public Observer {
 public:
  explicit Max(const ObserverSettings &settings) : Observer(settings) {}
  std::unique_ptr<Observer> clone() const override { return std::make_unique<Max>(*this); }
  std::string_view kind() const override { return "max"; }
  bool empty() const override { return ranges_.size() == 0; }

 protected:
  void take(const Tensor &x) override { widen(ranges_, measure(x, settings())); }
  void take_from(const Observer &other) override { widen(ranges_, static_cast<const Max &>(other).ranges_); }

  QuantizerPtr choose() const override {
    Ranges chosen;
    for (std::size_t c = 0; c < ranges_.size(); ++c)
      add_magnitude(chosen, std::max(-ranges_.mins[c], ranges_.maxs[c]), ranges_.mins[c] < 0);
    return choose_from(chosen, settings());
  }

  void write(ByteWriter &out) const override { write_ranges(out, ranges_); }
  void read(ByteReader &in) override { ranges_ = read_ranges(in, settings()); }

 private:
  Ranges ranges_;
};

}  // namespace

std::unique_ptr<Observer> make_max(const ObserverSettings &settings) { return std::make_unique<Max>(settings); }

}  // namespace qtn::quant
