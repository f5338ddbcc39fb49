// SPDX-License-Identifier: Apache-2.0
// What observers with a calibration histogram share: all but the search for the range.
#pragma once

#include "quant/observe/calibration_histogram.hpp"
#include "quant/observe/kinds.hpp"

namespace qtn::quant {

/// The range that a histogram, which is not empty, suggests.
using RangeSearch = Ranges (*)(const CalibrationHistogram &histogram, const ObserverSettings &settings);

std::unique_ptr<Observer> make_calibrator(std::string_view kind, const ObserverSettings &settings, Binning binning,
                                          RangeSearch search);

/// As ONNX Runtime: not beyond what was seen. Zero is in it, as a quantizer needs.
Ranges within_seen(float lo, float hi, const CalibrationHistogram &histogram);

/// Throws QTN_EINVAL where there are fewer bins than the search begins with.
void need_bins(std::string_view kind, const ObserverSettings &settings, std::int64_t least);

}  // namespace qtn::quant
