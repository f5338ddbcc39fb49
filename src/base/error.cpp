// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"

#include <charconv>
#include <cmath>

namespace qtn {
namespace {

// Streams and printf would ask the locales of the program, and messages, names and headers of files are the same in
// all.
template <class... Options>
void put_number(std::string &text, Options... options) {
  char digits[32];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, options...).ptr);
}

void put(std::string &text, std::string_view part) { text += part; }
void put(std::string &text, char part) { text += part; }
void put(std::string &text, std::int64_t number) { put_number(text, number); }
void put(std::string &text, std::uint64_t number) { put_number(text, number); }

/// As "%g" has it. A NaN has no sign that would mean something; C# writes its own with one.
void put(std::string &text, double number) {
  if (std::isnan(number))
    text += "nan";
  else
    put_number(text, number, std::chars_format::general, 6);
}

}  // namespace

std::string join(std::span<const TextPart> parts) {
  std::string text;
  for (const TextPart &part : parts) std::visit([&](const auto &value) { put(text, value); }, part);
  return text;
}

void fail_with(qstatus status, std::span<const TextPart> parts) { throw Error(status, join(parts)); }

}  // namespace qtn
