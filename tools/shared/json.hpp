// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>

namespace tool {

/// One line. Names of files and of nodes may be any bytes: what is not UTF-8 is shown as U+FFFD.
inline void print_json(std::FILE *to, const nlohmann::ordered_json &json) {
  std::fprintf(to, "%s\n", json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

}  // namespace tool
