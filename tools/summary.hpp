// SPDX-License-Identifier: Apache-2.0
// What a user is told of a quantization: what was tried, how near the result is, how fast, and what to do next.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "calibration.hpp"
#include "handles.hpp"

namespace tool {

struct Quantization {
  const qmodel *real, *quantized;
  nlohmann::ordered_json outcome;  // the report of qmodel_quantize
  const CalibrationData &data;
  bool automatic;  // --auto was given
};

/// "accuracy" and "trials" of the report, "nodes", "speed", "warnings", "next". Measures the time of both models.
nlohmann::ordered_json summarize(const Quantization &quantization);

/// The same in sentences, warnings on standard error.
void print_summary(const nlohmann::ordered_json &summary, const nlohmann::ordered_json &outcome);

/// How many nodes there are, and how many of them compute on integers.
nlohmann::ordered_json node_counts(const qmodel *model);

}  // namespace tool
