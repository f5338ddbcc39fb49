// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"

#include <sstream>

namespace qtn {

std::string join(std::span<const TextPart> parts) {
  std::ostringstream text;
  text.exceptions(std::ios_base::badbit);  // else a stream takes running out of memory for the end of the text
  for (const TextPart &part : parts) std::visit([&](const auto &value) { text << value; }, part);
  return std::move(text).str();
}

void fail_with(qstatus status, std::span<const TextPart> parts) { throw Error(status, join(parts)); }

}  // namespace qtn
