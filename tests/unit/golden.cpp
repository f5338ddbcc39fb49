// SPDX-License-Identifier: Apache-2.0
#include "golden.hpp"

#include <fstream>
#include <limits>

namespace qtn::test {

nlohmann::json read_json(const std::string &path) {
  std::ifstream file(path);
  if (!file) fail_test("no golden file ", path);
  return nlohmann::json::parse(file);
}

nlohmann::json golden(const std::string &name) { return read_json(cat(QTN_GOLDEN_DIR, "/", name)); }

double number(const nlohmann::json &j) {
  if (!j.is_string()) return j.get<double>();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto text = j.get<std::string>();
  return text == "inf" ? infinity : text == "-inf" ? -infinity : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace qtn::test
