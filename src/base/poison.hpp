// SPDX-License-Identifier: Apache-2.0
// In builds with QTN_CHECKS, memory that nobody has written yet holds what no result survives: floats that are
// signalling NaN, and bytes that are large.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace qtn {

#ifdef QTN_CHECKS
/// Not all of a large piece: to ask for it and never touch it must stay cheap.
inline void poison(void *memory, std::size_t bytes) {
  constexpr std::uint32_t kWord = 0xFFA5A5A5;
  bytes = std::min(bytes, std::size_t{1} << 26);
  auto *to = static_cast<std::byte *>(memory);
  for (std::size_t i = 0; i < bytes; i += sizeof kWord) std::memcpy(to + i, &kWord, std::min(sizeof kWord, bytes - i));
}
#else
inline void poison(void *, std::size_t) {}
#endif

}  // namespace qtn
