// SPDX-License-Identifier: Apache-2.0
// The library finds these functions in the program before those of libstdc++.
#include "memory.hpp"

#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> used{0}, limit{SIZE_MAX};

void *allocate(std::size_t size, std::size_t alignment) {
  if (size > limit || used > limit - size) throw std::bad_alloc();
  void *p = nullptr;
  if (alignment <= alignof(std::max_align_t))
    p = std::malloc(size == 0 ? 1 : size);
  else if (posix_memalign(&p, alignment, size == 0 ? 1 : size) != 0)
    p = nullptr;
  if (p == nullptr) throw std::bad_alloc();
  used += malloc_usable_size(p);
  return p;
}

void release(void *p) {
  if (p == nullptr) return;
  used -= malloc_usable_size(p);
  std::free(p);
}

}  // namespace

void *operator new(std::size_t n) { return allocate(n, 1); }
void *operator new(std::size_t n, const std::nothrow_t &) noexcept {
  try {
    return allocate(n, 1);
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}
void *operator new(std::size_t n, std::align_val_t a) { return allocate(n, static_cast<std::size_t>(a)); }
void operator delete(void *p) noexcept { release(p); }
void operator delete(void *p, const std::nothrow_t &) noexcept { release(p); }
void operator delete(void *p, std::size_t) noexcept { release(p); }
void operator delete(void *p, std::align_val_t) noexcept { release(p); }
void operator delete(void *p, std::size_t, std::align_val_t) noexcept { release(p); }

namespace fuzz {

MemoryLimit::MemoryLimit(std::size_t bytes) { limit = used + bytes; }
MemoryLimit::~MemoryLimit() { limit = SIZE_MAX; }

}  // namespace fuzz
