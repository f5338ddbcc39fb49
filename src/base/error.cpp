// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"

#include <cmath>
#include <sstream>

namespace qtn {
namespace {

template <class T>
void put(std::ostream &text, const T &value) {
  text << value;
}

/// A NaN has no sign that would mean something; C# writes its own with one.
void put(std::ostream &text, double value) {
  if (std::isnan(value))
    text << "nan";
  else
    text << value;
}

}  // namespace

std::string join(std::span<const TextPart> parts) {
  std::ostringstream text;
  text.exceptions(std::ios_base::badbit);  // else a stream takes running out of memory for the end of the text
  for (const TextPart &part : parts) std::visit([&](const auto &value) { put(text, value); }, part);
  return std::move(text).str();
}

void fail_with(qstatus status, std::span<const TextPart> parts) { throw Error(status, join(parts)); }

}  // namespace qtn
