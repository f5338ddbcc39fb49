// SPDX-License-Identifier: Apache-2.0
// How long a model takes.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

#include "shared/model.hpp"

namespace tool {

/// The time of every run, in milliseconds and sorted.
struct Times {
  std::vector<double> wall, cpu;
};

/// Runs for so many seconds after a warm-up of a tenth of that.
Times measure(const qmodel *model, const qsession *session, const std::vector<Tensor> &inputs, double seconds);

/// `part` 0.5: the median.
double percentile(const std::vector<double> &sorted, double part);

/// What qsession_profile gives, with the median time of each node in `runs` of them.
nlohmann::ordered_json profile(const qsession *session, const std::vector<Tensor> &inputs, size_t runs);

}  // namespace tool
