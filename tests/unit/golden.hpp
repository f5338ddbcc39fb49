// SPDX-License-Identifier: Apache-2.0
// Golden vectors: JSON in tests/golden, described in its README.
#pragma once

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "check.hpp"

namespace qtn::test {

inline nlohmann::json read_json(const std::filesystem::path &path) {
  std::ifstream file(path);
  if (!file) fail_test("no golden file ", path.string());
  return nlohmann::json::parse(file);
}

/// "nan", "inf" and "-inf" are strings, which JSON has no numbers for.
inline double number(const nlohmann::json &j) {
  if (!j.is_string()) return j.get<double>();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto text = j.get<std::string>();
  return text == "inf" ? infinity : text == "-inf" ? -infinity : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace qtn::test
