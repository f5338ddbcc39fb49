// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "base/utf8.hpp"

namespace qtn {
namespace {

void append_escaped(std::string &out, char c) {
  constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '"':
    case '\\':
      out.append({'\\', c});
      break;
    case '\n':
      out += "\\n";
      break;
    default: {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x20)
        out.append("\\u00").append({kHex[byte >> 4], kHex[byte & 15]});
      else
        out += c;
    }
  }
}

}  // namespace

void JsonWriter::separate() {
  if (!text_.empty() && text_.back() != '{' && text_.back() != '[' && text_.back() != ':') text_ += ',';
}

void JsonWriter::begin(char bracket) {
  separate();
  text_ += bracket;
}

void JsonWriter::raw(std::string_view text) {
  separate();
  text_ += text;
}

void JsonWriter::key(std::string_view name) {
  value(name);
  text_ += ':';
}

void JsonWriter::value(bool truth) { raw(truth ? "true" : "false"); }

void JsonWriter::value(double number) {
  if (!std::isfinite(number)) return raw("null");
  std::array<char, 32> digits;
  const char *end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  const std::string_view text(digits.data(), static_cast<std::size_t>(end - digits.data()));
  raw(text);
  if (text.find_first_of(".e") == std::string_view::npos) text_ += ".0";  // so that readers take it for a real
}

void JsonWriter::value(std::string_view text) {
  separate();
  text_ += '"';
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0)
      text_ += "\xEF\xBF\xBD";
    else if (length == 1)
      append_escaped(text_, text[0]);
    else
      text_ += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  text_ += '"';
}

}  // namespace qtn
