// SPDX-License-Identifier: Apache-2.0
#include "train/support.hpp"

namespace qtn::test {

Attrs attrs_of(const nlohmann::json &items) {
  Attrs a;
  for (const auto &[key, value] : items.items())
    a.set(key, value.is_string()           ? Attr(value.get<std::string>())
               : value.is_number_integer() ? Attr(value.get<std::int64_t>())
                                           : Attr(value.get<double>()));
  return a;
}

}  // namespace qtn::test
