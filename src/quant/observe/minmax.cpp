// SPDX-License-Identifier: Apache-2.0
// "minmax": the smallest and largest value ever seen, per tensor or per channel.
#include "quant/observe/kinds.hpp"

namespace qtn::quant {
namespace {

class MinMax final : public Observer {
 public:
  explicit MinMax(const ObserverSettings &settings) : Observer(settings) {}
  std::unique_ptr<Observer> clone() const override { return std::make_unique<MinMax>(*this); }
  std::string_view kind() const override { return "minmax"; }
  bool empty() const override { return ranges_.size() == 0; }

 protected:
  void take(const Tensor &x) override { widen(ranges_, measure(x, settings())); }
  void take_from(const Observer &other) override { widen(ranges_, static_cast<const MinMax &>(other).ranges_); }
  QuantizerPtr choose() const override { return choose_from(ranges_, settings()); }
  void write(ByteWriter &out) const override { write_ranges(out, ranges_); }
  void read(ByteReader &in) override { ranges_ = read_ranges(in, settings()); }

 private:
  Ranges ranges_;
};

}  // namespace

std::unique_ptr<Observer> make_minmax(const ObserverSettings &settings) { return std::make_unique<MinMax>(settings); }

}  // namespace qtn::quant
