// SPDX-License-Identifier: Apache-2.0
// What was tried to make a quantized model better than its plain recipe.
#pragma once

#include <optional>
#include <string>

namespace qtn::quant {

struct Trial {
  std::string name;
  double sqnr_db = 0;                ///< on the held-back samples
  std::optional<double> without_db;  ///< of what it was compared with; none for the plain recipe
  bool kept = false;
};

}  // namespace qtn::quant
