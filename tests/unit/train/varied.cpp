// SPDX-License-Identifier: Apache-2.0
#include "train/varied.hpp"

#include <cstring>

namespace qtn::test {

bool same_bits(const Tensor &a, const Tensor &b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.nbytes()) == 0;
}

Tensor varied(const Shape &shape, std::int64_t seed) {
  Tensor x(QTN_FLOAT32, shape);
  for (std::int64_t i = 0; i < x.count(); ++i)
    x.as<float>()[i] = static_cast<float>((i * 48271 + seed * 16807) % 20011 - 10005) / 10007.0f;
  return x;
}

}  // namespace qtn::test
