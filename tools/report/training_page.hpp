// SPDX-License-Identifier: Apache-2.0
// The page of `train --report`.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shared/training.hpp"

namespace tool {

/// Top-1 where epochs are judged, of one model on its way.
struct Accuracies {
  double before = 0;                 ///< of the model as it came
  std::optional<double> calibrated;  ///< with --qat: quantized, and not trained yet
  double after = 0;                  ///< of the model that is written
};

struct TrainingReport {
  std::string input, output;                                  // files
  std::vector<std::string> command;                           // words
  std::vector<std::pair<std::string, std::string>> settings;  // what each was, given or not
  std::string judged;                                         // the samples that top-1 is of
  Accuracies accuracies;
};

void write_training_report(const std::string &path, const TrainingReport &report, const Training &training);

}  // namespace tool
