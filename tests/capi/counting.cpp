// SPDX-License-Identifier: Apache-2.0
// The libraries find these functions in the program before they look into libstdc++ and libc.
#include "counting.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<long> allocations{0}, locks{0}, large{0};

constexpr std::size_t kLarge = 128 << 10;

void *allocate(std::size_t size, std::size_t alignment) noexcept {
  ++allocations;
  if (size >= kLarge) ++large;
  return std::aligned_alloc(alignment, (size + alignment) / alignment * alignment);
}

void *allocate_or_throw(std::size_t size, std::size_t alignment) {
  if (void *p = allocate(size, alignment)) return p;
  throw std::bad_alloc();
}

constexpr std::size_t kPlain = alignof(std::max_align_t);

}  // namespace

void *operator new(std::size_t n) { return allocate_or_throw(n, kPlain); }
void *operator new(std::size_t n, std::align_val_t a) { return allocate_or_throw(n, static_cast<std::size_t>(a)); }
void *operator new(std::size_t n, const std::nothrow_t &) noexcept { return allocate(n, kPlain); }
void operator delete(void *p) noexcept { std::free(p); }
void operator delete(void *p, std::size_t) noexcept { std::free(p); }
void operator delete(void *p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void *p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete(void *p, const std::nothrow_t &) noexcept { std::free(p); }

extern "C" __attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t *mutex) noexcept {
  static const auto real = reinterpret_cast<int (*)(pthread_mutex_t *)>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  ++locks;
  return real(mutex);
}

namespace qtn::test {

Counts counts() { return {allocations, locks, large}; }

}  // namespace qtn::test
