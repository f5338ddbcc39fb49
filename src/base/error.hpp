// SPDX-License-Identifier: Apache-2.0
// The one exception type of the core: a status for programs and one line of text, with the values in it, for people.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "qtensor/types.h"

namespace qtn {

class Error : public std::runtime_error {
 public:
  Error(qstatus status, const std::string &message) : std::runtime_error(message), status_(status) {}
  qstatus status() const noexcept { return status_; }

 private:
  qstatus status_;
};

/// QTN_EUNSUPPORTED: the value of something is needed before there is one.
class NotKnown : public Error {
 public:
  explicit NotKnown(const std::string &message) : Error(QTN_EUNSUPPORTED, message) {}
};

/// One part of a message.
using TextPart = std::variant<std::string_view, char, std::int64_t, std::uint64_t, double>;

template <class T>
TextPart text_part(const T &value) {
  if constexpr (std::is_same_v<T, char>)
    return value;
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<double>(value);
  else if constexpr (std::is_unsigned_v<T>)
    return static_cast<std::uint64_t>(value);
  else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>)
    return static_cast<std::int64_t>(value);
  else
    return std::string_view(value);
}

std::string join(std::span<const TextPart> parts);
[[noreturn]] void fail_with(qstatus status, std::span<const TextPart> parts);

/// Joins texts and numbers: cat("linear: weight has ", 64, " input features").
template <class... Parts>
std::string cat(const Parts &...parts) {
  return join(std::array<TextPart, sizeof...(parts)>{text_part(parts)...});
}

template <class... Parts>
[[noreturn]] void fail(qstatus status, const Parts &...parts) {
  fail_with(status, std::array<TextPart, sizeof...(parts)>{text_part(parts)...});
}

}  // namespace qtn
