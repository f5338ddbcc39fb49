// SPDX-License-Identifier: Apache-2.0
// Vectors of elements that a call needs while it runs: their bytes count for the limits, as those of buffers do.
#pragma once

#include <cstddef>
#include <vector>

namespace qtn {

/// Throws QTN_ENOMEM where the allowance of this thread is less, std::bad_alloc where there is no memory.
void *allocate_counted(std::size_t bytes);
void free_counted(void *memory, std::size_t bytes) noexcept;

template <class T>
struct CountedAllocator {
  using value_type = T;

  CountedAllocator() = default;
  template <class U>
  CountedAllocator(const CountedAllocator<U> &) noexcept {}

  T *allocate(std::size_t count) { return static_cast<T *>(allocate_counted(count * sizeof(T))); }
  void deallocate(T *p, std::size_t count) noexcept { free_counted(p, count * sizeof(T)); }
  friend bool operator==(CountedAllocator, CountedAllocator) { return true; }
};

template <class T>
using CountedVector = std::vector<T, CountedAllocator<T>>;

}  // namespace qtn
