// SPDX-License-Identifier: Apache-2.0
// Reading the options of one kind (of loss, optimizer, schedule) from attributes that hold those of others, too.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/find_named.hpp"
#include "core/attrs.hpp"

namespace qtn::train {

/// The row whose name the option `which` gives, the first one where it is absent. Throws QTN_EINVAL, listing the names.
template <class Kind>
const Kind &find_kind(std::span<const Kind> kinds, const Attrs &attrs, std::string_view which) {
  const std::string name = attrs.get_string(which, std::string(kinds.front().name));
  return find_named(kinds, name, which, "kind", &Kind::name);
}

/// Throws QTN_EINVAL on an option that `all` lists and this kind has no use for, listing those that it has.
void check_options(const Attrs &attrs, std::span<const AttrSpec> all, std::span<const std::string_view> known,
                   std::string_view which, std::string_view kind);

/// Throws QTN_EINVAL on a value other than 0 and 1.
bool flag(const Attrs &attrs, std::string_view key, bool fallback, std::string_view which);

/// Throw QTN_EINVAL with the value where it is outside: [0, 1), (0, infinity), [0, infinity).
double fraction(const Attrs &attrs, std::string_view key, double fallback, std::string_view which);
double positive(const Attrs &attrs, std::string_view key, double fallback, std::string_view which);
double not_negative(const Attrs &attrs, std::string_view key, double fallback, std::string_view which);

}  // namespace qtn::train
