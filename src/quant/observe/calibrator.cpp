// SPDX-License-Identifier: Apache-2.0
#include "quant/observe/calibrator.hpp"

#include <algorithm>

namespace qtn::quant {
namespace {

class Calibrator final : public Observer {
 public:
  Calibrator(std::string_view kind, const ObserverSettings &settings, Binning binning, RangeSearch search)
      : Observer(settings), kind_(kind), histogram_(binning, settings.bins), search_(search) {}
  std::unique_ptr<Observer> clone() const override { return std::make_unique<Calibrator>(*this); }
  std::string_view kind() const override { return kind_; }
  bool empty() const override { return histogram_.empty(); }

 protected:
  void take(const Tensor &x) override {
    histogram_.add(std::span(x.as<const float>(), static_cast<std::size_t>(x.count())));
  }
  void take_from(const Observer &other) override { histogram_.add(static_cast<const Calibrator &>(other).histogram_); }
  QuantizerPtr choose() const override { return choose_from(search_(histogram_, settings()), settings()); }
  void write(ByteWriter &out) const override { histogram_.write(out); }
  void read(ByteReader &in) override { histogram_.read(in); }

 private:
  std::string_view kind_;
  CalibrationHistogram histogram_;
  RangeSearch search_;
};

}  // namespace

std::unique_ptr<Observer> make_calibrator(std::string_view kind, const ObserverSettings &settings, Binning binning,
                                          RangeSearch search) {
  if (binning == Binning::onnx_signed && settings.bins % 2 == 1)
    fail(QTN_EINVAL, "observer: bins ", settings.bins, " of \"", kind,
         "\" is odd; as many must lie on either side of 0");
  return std::make_unique<Calibrator>(kind, settings, binning, search);
}

Ranges within_seen(float lo, float hi, const CalibrationHistogram &histogram) {
  return {{std::min(std::max(lo, histogram.min()), 0.0f)}, {std::max(std::min(hi, histogram.max()), 0.0f)}};
}

void need_bins(std::string_view kind, const ObserverSettings &settings, std::int64_t least) {
  if (settings.bins < least)
    fail(QTN_EINVAL, "observer: bins ", settings.bins, " is less than ", least, ", where the search of \"", kind,
         "\" begins");
}

}  // namespace qtn::quant
