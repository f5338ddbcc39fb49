// SPDX-License-Identifier: Apache-2.0
// What the tests of this folder share: golden files, and the same with every number of threads.
#pragma once

#include <cstring>

#include "base/parallel.hpp"
#include "ops/support.hpp"

namespace qtn::test {

inline nlohmann::json golden(const std::string &name) {
  return read_json(std::string(QTN_GOLDEN_DIR) + "/training/" + name);
}

inline Attrs attrs_of(const nlohmann::json &items) {
  Attrs a;
  for (const auto &[key, value] : items.items())
    a.set(key, value.is_string()           ? Attr(value.get<std::string>())
               : value.is_number_integer() ? Attr(value.get<std::int64_t>())
                                           : Attr(value.get<double>()));
  return a;
}

inline bool same_bits(const Tensor &a, const Tensor &b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.nbytes()) == 0;
}

/// Numbers from -1 to 1 without a pattern that a block or a vector could hide.
inline Tensor varied(const Shape &shape, std::int64_t seed) {
  Tensor x(QTN_FLOAT32, shape);
  for (std::int64_t i = 0; i < x.count(); ++i)
    x.as<float>()[i] = static_cast<float>((i * 48271 + seed * 16807) % 20011 - 10005) / 10007.0f;
  return x;
}

template <class Body>
void for_thread_counts(Body body) {
  for (const int threads : {1, 2, 3, 16}) {
    set_default_threads(threads);
    body();
  }
  set_default_threads(0);
}

}  // namespace qtn::test
