// SPDX-License-Identifier: Apache-2.0
// What numbers on the command line must be. CLI11's own checks answer with the whole range of a double.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

namespace tool {

/// Nothing where the text is more than a number, or none.
template <typename Number>
std::optional<Number> number_of(const std::string &text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

inline CLI::Validator positive_count() {
  return {[](const std::string &text) {
            return number_of<int32_t>(text).value_or(0) > 0 ? "" : text + " is not a whole number from 1 up";
          },
          ""};
}

inline CLI::Validator positive_seconds() {
  return {[](const std::string &text) {
            const double value = number_of<double>(text).value_or(0);
            return value > 0 && value < 1e6 ? "" : text + " is not a time in seconds";
          },
          ""};
}

/// Both ends belong to it.
inline CLI::Validator between_0_and_1() {
  return {[](const std::string &text) {
            const double value = number_of<double>(text).value_or(-1);
            return value >= 0 && value <= 1 ? "" : text + " is not a number from 0 to 1";
          },
          ""};
}

}  // namespace tool
