// SPDX-License-Identifier: Apache-2.0
// What a file says, checked: whatever is wrong with it is wrong with the file.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "core/attrs.hpp"

namespace qtn::io {

/// Runs body(); its errors become QTN_EFORMAT, with `where` before their text. What is right, but not offered, stays
/// QTN_EUNSUPPORTED; a file that cannot be read names itself.
template <class Body>
decltype(auto) checked(const std::string &where, Body &&body) {
  try {
    return std::forward<Body>(body)();
  } catch (const Error &error) {
    if (error.status() == QTN_EIO) throw;
    const bool unsupported = error.status() == QTN_EUNSUPPORTED;
    fail(unsupported ? QTN_EUNSUPPORTED : QTN_EFORMAT, where, ": ", error.what());
  }
}

/// Throws unless the fields are those of `specs`, and all of them.
inline void check_complete(const Attrs &fields, std::span<const AttrSpec> specs, const char *who) {
  fields.check(specs, who);
  for (const AttrSpec &spec : specs)
    if (!fields.has(spec.name)) fail(QTN_EFORMAT, who, ": \"", spec.name, "\" is missing");
}

}  // namespace qtn::io
