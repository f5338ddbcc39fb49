// SPDX-License-Identifier: Apache-2.0
// Operators whose operands must go together (heads, places, features): all of them are made for the call.
#pragma once

#include <optional>

#include "calls.hpp"

namespace fuzz {

struct Measured {
  std::vector<Operand> operands;
  std::vector<Attribute> attrs;  ///< those that follow from the shapes
};

/// None where the operator's operands need not go together.
std::optional<Measured> measured(const std::string &op, Bytes &bytes);

}  // namespace fuzz
