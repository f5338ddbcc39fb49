// SPDX-License-Identifier: Apache-2.0
// What numbers on the command line must be. CLI11's own checks answer with the whole range of a double.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>

namespace tool {

template <typename Number>
bool is_positive(const std::string &text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0;
}

inline CLI::Validator positive_count() {
  return {[](const std::string &text) {
            return is_positive<int32_t>(text) ? "" : text + " is not a whole number from 1 up";
          },
          ""};
}

inline CLI::Validator positive_seconds() {
  return {[](const std::string &text) {
            return is_positive<double>(text) && std::stod(text) < 1e6 ? "" : text + " is not a time in seconds";
          },
          ""};
}

/// Both ends belong to it.
inline CLI::Validator between_0_and_1() {
  return {[](const std::string &text) {
            double value = -1;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            const bool fits = error == std::errc() && end == text.data() + text.size() && value >= 0 && value <= 1;
            return fits ? "" : text + " is not a number from 0 to 1";
          },
          ""};
}

}  // namespace tool
