// SPDX-License-Identifier: Apache-2.0
// qmodel_quantize on samples of the command line, with a progress bar.
#pragma once

#include <string>

#include "shared/calibration.hpp"
#include "shared/handles.hpp"

namespace tool {

struct Quantized {
  Model model;
  std::string report;  // JSON
};

Quantized quantize_on(const qmodel *model, const qconfig *config, const CalibrationData &data, const qattrs *attrs);

}  // namespace tool
