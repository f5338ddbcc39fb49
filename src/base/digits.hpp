// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <string>

namespace qtn {

/// A number as printf has it where no locale says otherwise.
inline std::string digits_of(double number, std::chars_format format, int precision) {
  char text[512];  // the largest double has 309 digits in front of its point
  return {text, std::to_chars(text, text + sizeof text, number, format, precision).ptr};
}

}  // namespace qtn
