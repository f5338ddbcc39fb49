// SPDX-License-Identifier: Apache-2.0
// The one exception type of the core: a status for programs and one line of text, with the values in it, for people.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

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

/// Joins anything that can be streamed: cat("linear: weight has ", 64, " input features").
template <class... Parts>
std::string cat(const Parts &...parts) {
  std::ostringstream text;
  text.exceptions(std::ios_base::badbit);  // else a stream takes running out of memory for the end of the text
  (text << ... << parts);
  return std::move(text).str();
}

template <class... Parts>
[[noreturn]] void fail(qstatus status, const Parts &...parts) {
  throw Error(status, cat(parts...));
}

}  // namespace qtn
