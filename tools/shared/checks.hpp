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

/// A number for which `right` holds; what does not is "not `what`".
template <typename Number, typename Right>
CLI::Validator number_that(Right right, const std::string &what) {
  return {[=](const std::string &text) {
            const std::optional<Number> value = number_of<Number>(text);
            return value && right(*value) ? "" : (text.empty() ? "an empty word" : text) + " is not " + what;
          },
          ""};
}

inline CLI::Validator positive_count() {
  return number_that<int32_t>([](int32_t n) { return n > 0; }, "a whole number from 1 up");
}

inline CLI::Validator thread_count() {
  return number_that<int32_t>([](int32_t n) { return n > 0 && n <= 1024; }, "a number of threads from 1 to 1024");
}

inline CLI::Validator positive_seconds() {
  return number_that<double>([](double s) { return s > 0 && s < 1e6; }, "a time in seconds");
}

/// Both ends belong to it.
inline CLI::Validator between_0_and_1() {
  return number_that<double>([](double x) { return x >= 0 && x <= 1; }, "a number from 0 to 1");
}

}  // namespace tool
