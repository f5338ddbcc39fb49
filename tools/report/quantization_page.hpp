// SPDX-License-Identifier: Apache-2.0
// The page of `quantize --report`.
#pragma once

#include <string>
#include <vector>

#include "shared/calibration.hpp"
#include "shared/handles.hpp"

namespace tool {

struct ReportSource {
  std::string input, output;  // files
  const qmodel *real, *int8;
  std::string outcome;  // the report of qmodel_quantize
  const CalibrationData &data;
  const DataOptions &data_options;
  std::vector<std::string> command;  // words
};

/// Measures both models and writes the page.
void write_report(const std::string &path, const ReportSource &source);

}  // namespace tool
