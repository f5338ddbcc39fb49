// SPDX-License-Identifier: Apache-2.0
#include "base/counted.hpp"

#include <cstring>
#include <new>

#include "base/limits.hpp"
#include "base/memory.hpp"

namespace qtn {

// In front of the elements stands the scope that they were taken from.

void *allocate_counted(std::size_t bytes) {
  const std::uint64_t scope = Allowance::take(bytes);
  try {
    auto *start = static_cast<std::byte *>(::operator new (bytes + kAlignment, std::align_val_t{kAlignment}));
    std::memcpy(start, &scope, sizeof scope);
    return start + kAlignment;
  } catch (...) {
    Allowance::give_back(scope, bytes);
    throw;
  }
}

void free_counted(void *memory, std::size_t bytes) noexcept {
  std::byte *start = static_cast<std::byte *>(memory) - kAlignment;
  std::uint64_t scope;
  std::memcpy(&scope, start, sizeof scope);
  ::operator delete (start, std::align_val_t{kAlignment});
  Allowance::give_back(scope, bytes);
}

}  // namespace qtn
