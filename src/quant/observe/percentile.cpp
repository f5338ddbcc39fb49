// SPDX-License-Identifier: Apache-2.0
// "percentile": ONNX Runtime's PercentileCalibrater: the range that holds so many percent of the values.
#include "quant/observe/calibrator.hpp"

namespace qtn::quant {
namespace {

Ranges range_of_magnitudes(const CalibrationHistogram &histogram, const ObserverSettings &settings) {
  const float amax = histogram.quantile(settings.percentile / 100.0);
  return within_seen(-amax, amax, histogram);
}

Ranges range_between_tails(const CalibrationHistogram &histogram, const ObserverSettings &settings) {
  const double tail = (100.0 - settings.percentile) / 200.0;
  return within_seen(histogram.quantile(tail), histogram.quantile(1.0 - tail), histogram);
}

}  // namespace

std::unique_ptr<Observer> make_percentile(const ObserverSettings &settings) {
  if (settings.absolute) return make_calibrator("percentile", settings, Binning::onnx_absolute, range_of_magnitudes);
  return make_calibrator("percentile", settings, Binning::onnx_signed, range_between_tails);
}

}  // namespace qtn::quant
