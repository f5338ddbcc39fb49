// SPDX-License-Identifier: Apache-2.0
// JSON text, written piece by piece. The trees of nlohmann::json allocate in their destructor, and so end the process
// where memory runs out.
#pragma once

#include <concepts>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>

namespace qtn {

/// Puts the commas. What it is told must make sense as JSON: a key before each value of an object, every end for its
/// begin.
class JsonWriter {
 public:
  void begin_object() { begin('{'); }
  void begin_list() { begin('['); }
  void end_object() { text_ += '}'; }
  void end_list() { text_ += ']'; }
  void key(std::string_view name);

  /// Bytes that are no UTF-8 become U+FFFD.
  void value(std::string_view text);
  void value(const char *text) { value(std::string_view(text)); }
  /// The shortest decimal that reads back as the same double; null for one that is not finite.
  void value(double number);
  void value(bool truth);
  void null() { raw("null"); }
  template <std::integral T>
  void value(T number) {
    raw(std::to_string(number));
  }
  template <std::ranges::input_range R>
  requires(!std::convertible_to<R, std::string_view>) void value(const R &items) {
    begin_list();
    for (const auto &item : items) value(item);
    end_list();
  }

  template <class T>
  void member(std::string_view name, const T &content) {
    key(name);
    value(content);
  }

  std::string take() { return std::move(text_); }

 private:
  void begin(char bracket);
  void raw(std::string_view text);
  void separate();

  std::string text_;
};

}  // namespace qtn
