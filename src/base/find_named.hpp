// SPDX-License-Identifier: Apache-2.0
// Looking up what a program or a file gives by name.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace qtn {

/// The item whose name, as `name_of` says, is `name`. Throws where there is none:
/// `where: what "name" is unknown; known are a b c`, or with QTN_EUNSUPPORTED `is not offered; offered are a b c`.
template <class Items, class NameOf = std::identity>
const auto &find_named(const Items &items, std::string_view name, std::string_view where, std::string_view what,
                       NameOf name_of = {}, qstatus status = QTN_EINVAL) {
  for (const auto &item : items)
    if (std::invoke(name_of, item) == name) return item;
  std::string known;
  for (const auto &item : items) known += cat(" ", std::string_view(std::invoke(name_of, item)));
  const char *is_not = status == QTN_EUNSUPPORTED ? "\" is not offered; offered are" : "\" is unknown; known are";
  fail(status, where, ": ", what, " \"", name, is_not, known);
}

}  // namespace qtn
