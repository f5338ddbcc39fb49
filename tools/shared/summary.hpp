// SPDX-License-Identifier: Apache-2.0
// What a user is told of a quantization: the report of the library, with the speed that is measured here.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>

#include "shared/calibration.hpp"
#include "shared/handles.hpp"

namespace tool {

/// The same report with "speed": how long both models take for the first batch of the data.
nlohmann::ordered_json with_speed(nlohmann::ordered_json report, const qmodel *real, const qmodel *quantized,
                                  const CalibrationData &data);

/// "accuracy", "trials", "nodes", "speed", "warnings", "next".
nlohmann::ordered_json summarize(const nlohmann::ordered_json &report);

/// The report in sentences, warnings on standard error.
void print_summary(std::FILE *talk, nlohmann::ordered_json report);

}  // namespace tool
