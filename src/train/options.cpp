// SPDX-License-Identifier: Apache-2.0
#include "train/options.hpp"

#include <algorithm>
#include <cmath>

namespace qtn::train {

void check_options(const Attrs &attrs, std::span<const AttrSpec> all, std::span<const std::string_view> known,
                   std::string_view which, std::string_view kind) {
  for (const AttrSpec &spec : all) {
    if (!attrs.has(spec.name) || std::find(known.begin(), known.end(), spec.name) != known.end()) continue;
    std::string names;
    for (const std::string_view name : known) names += cat(" ", name);
    fail(QTN_EINVAL, which, ": \"", kind, "\" has no \"", spec.name, "\"; it has:", names.empty() ? " none" : names);
  }
}

bool flag(const Attrs &attrs, std::string_view key, bool fallback, std::string_view which) {
  const std::int64_t value = attrs.get_int(key, fallback);
  if (value != 0 && value != 1) fail(QTN_EINVAL, which, ": ", key, " is ", value, ", not 0 or 1");
  return value != 0;
}

double fraction(const Attrs &attrs, std::string_view key, double fallback, std::string_view which) {
  const double value = attrs.get_float(key, fallback);
  if (!(value >= 0 && value < 1)) fail(QTN_EINVAL, which, ": ", key, " ", value, " is outside [0, 1)");
  return value;
}

double positive(const Attrs &attrs, std::string_view key, double fallback, std::string_view which) {
  const double value = attrs.get_float(key, fallback);
  if (!(value > 0 && std::isfinite(value))) fail(QTN_EINVAL, which, ": ", key, " ", value, " is not positive");
  return value;
}

double not_negative(const Attrs &attrs, std::string_view key, double fallback, std::string_view which) {
  const double value = attrs.get_float(key, fallback);
  if (!(value >= 0 && std::isfinite(value)))
    fail(QTN_EINVAL, which, ": ", key, " ", value, " is not zero or a positive number");
  return value;
}

}  // namespace qtn::train
