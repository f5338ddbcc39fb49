// SPDX-License-Identifier: Apache-2.0
#include "runtime/widen.hpp"

namespace qtn::runtime {

std::uint16_t *copy_bytes(std::uint16_t *to, const std::uint8_t *from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
  return to + count;
}

}  // namespace qtn::runtime
