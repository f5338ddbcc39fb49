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
  constexpr std::size_t kBlock = 4096;                 // copied from the beginning, which stays in cache
  auto *to = static_cast<std::byte *>(memory);
  const std::size_t end = std::min(bytes, kMost);
  if (end == 0) return;
  std::memcpy(to, &kWord, std::min(sizeof kWord, end));
  for (std::size_t done = sizeof kWord, size; done < end; done += size) {
    size = std::min({done, kBlock, end - done});
    std::memcpy(to + done, to, size);
  }
}

}  // namespace qtn

#endif
