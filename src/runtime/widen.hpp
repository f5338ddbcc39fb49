// SPDX-License-Identifier: Apache-2.0
// Bytes on their way to kernels that multiply words.
#pragma once

#include <cstdint>
#include <cstring>

namespace qtn::runtime {

/// Both return where what they wrote ends.
std::uint16_t *copy_bytes(std::uint16_t *to, const std::uint8_t *from, std::int64_t count);

inline std::uint8_t *copy_bytes(std::uint8_t *to, const std::uint8_t *from, std::int64_t count) {
  std::memcpy(to, from, static_cast<std::size_t>(count));
  return to + count;
}

}  // namespace qtn::runtime
