// SPDX-License-Identifier: Apache-2.0
#include "report/page.hpp"

#include <algorithm>
#include <cctype>
#include <ctime>
#include <filesystem>
#include <string_view>

#include "data/file.hpp"

namespace tool {

namespace {

using Json = nlohmann::ordered_json;

std::string quoted(const std::string &word) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) || std::string_view("_@%+=:,./-").find(char(c)) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

// Inside strings of JSON is the only place where "<" can be, and nothing in a script element may look like its end.
std::string escaped(const Json &data) {
  std::string text;
  for (const char c : data.dump(-1, ' ', false, Json::error_handler_t::replace))
    text += c == '<' ? "\\u003c" : std::string(1, c);
  return text;
}

}  // namespace

std::string command_line(const std::vector<std::string> &words) {
  std::string line = "qtensor";
  for (const std::string &word : words) line += " " + quoted(word);
  return line;
}

std::string date() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", std::gmtime(&now));
  return text;
}

void write_page(const std::string &path, const char *page, const Json &data) {
  constexpr std::string_view kPlace = "REPORT_DATA";
  std::string text = page;
  text.replace(text.find(kPlace), kPlace.size(), escaped(data));
  write_file(path, text);
}

}  // namespace tool
