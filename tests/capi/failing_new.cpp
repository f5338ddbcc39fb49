// SPDX-License-Identifier: Apache-2.0
#include "failing_new.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<long> live{0};       // allocations not freed yet
std::atomic<long> countdown{0};  // the allocation that brings it to 0 fails; below 0: none will
std::atomic<bool> failed{false};
std::atomic<bool> for_good{false};

void *allocate(std::size_t size, std::size_t alignment) noexcept {
  if (countdown.load(std::memory_order_relaxed) > 0 && countdown.fetch_sub(1) == 1) {
    failed = true;
    if (for_good) countdown = 1;
    return nullptr;
  }
  void *p = nullptr;
  if (posix_memalign(&p, alignment < sizeof(void *) ? sizeof(void *) : alignment, size ? size : 1) != 0) return nullptr;
  ++live;
  return p;
}

void *allocate_or_throw(std::size_t size, std::size_t alignment) {
  void *p = allocate(size, alignment);
  if (!p) throw std::bad_alloc();
  return p;
}

void release(void *p) noexcept {
  if (!p) return;
  --live;
  std::free(p);
}

constexpr std::size_t kPlain = alignof(std::max_align_t);

}  // namespace

void *operator new(std::size_t n) { return allocate_or_throw(n, kPlain); }
void *operator new[](std::size_t n) { return allocate_or_throw(n, kPlain); }
void *operator new(std::size_t n, std::align_val_t a) { return allocate_or_throw(n, static_cast<std::size_t>(a)); }
void *operator new[](std::size_t n, std::align_val_t a) { return allocate_or_throw(n, static_cast<std::size_t>(a)); }
void *operator new(std::size_t n, const std::nothrow_t &) noexcept { return allocate(n, kPlain); }
void *operator new[](std::size_t n, const std::nothrow_t &) noexcept { return allocate(n, kPlain); }
void *operator new(std::size_t n, std::align_val_t a, const std::nothrow_t &) noexcept {
  return allocate(n, static_cast<std::size_t>(a));
}
void *operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t &) noexcept {
  return allocate(n, static_cast<std::size_t>(a));
}
void operator delete(void *p) noexcept { release(p); }
void operator delete[](void *p) noexcept { release(p); }
void operator delete(void *p, std::size_t) noexcept { release(p); }
void operator delete[](void *p, std::size_t) noexcept { release(p); }
void operator delete(void *p, std::align_val_t) noexcept { release(p); }
void operator delete[](void *p, std::align_val_t) noexcept { release(p); }
void operator delete(void *p, std::size_t, std::align_val_t) noexcept { release(p); }
void operator delete[](void *p, std::size_t, std::align_val_t) noexcept { release(p); }
void operator delete(void *p, const std::nothrow_t &) noexcept { release(p); }
void operator delete[](void *p, const std::nothrow_t &) noexcept { release(p); }
void operator delete(void *p, std::align_val_t, const std::nothrow_t &) noexcept { release(p); }
void operator delete[](void *p, std::align_val_t, const std::nothrow_t &) noexcept { release(p); }

void fail_new(long n) {
  failed = for_good = false;
  countdown = n;
}

void fail_new_from(long n) {
  fail_new(n);
  for_good = true;
}

bool stop_failing_new() {
  countdown = 0;
  return failed;
}

long pause_failing_new() { return countdown.exchange(0); }

void go_on_failing_new(long left) { countdown = left; }

long live_allocations() { return live; }
