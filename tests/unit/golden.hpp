// SPDX-License-Identifier: Apache-2.0
// Golden vectors: JSON in tests/golden, described in its README.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "check.hpp"

namespace qtn::test {

nlohmann::json read_json(const std::string &path);

/// A file of tests/golden: golden("quant/ptq.json").
nlohmann::json golden(const std::string &name);

/// "nan", "inf" and "-inf" are strings, which JSON has no numbers for.
double number(const nlohmann::json &j);

}  // namespace qtn::test
