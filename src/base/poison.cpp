// SPDX-License-Identifier: Apache-2.0
#include "base/poison.hpp"

#ifdef QTN_CHECKS

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace qtn {

void poison(void *memory, std::size_t bytes) {
  constexpr std::uint32_t kWord = 0xFFA5A5A5;
  constexpr std::size_t kMost = std::size_t{1} << 26;  // to ask for a large piece and never touch it must stay cheap
  auto *to = static_cast<std::byte *>(memory);
  for (std::size_t i = 0; i < std::min(bytes, kMost); i += sizeof kWord)
    std::memcpy(to + i, &kWord, std::min(sizeof kWord, bytes - i));
}

}  // namespace qtn

#endif
