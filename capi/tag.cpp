// SPDX-License-Identifier: Apache-2.0
#include "tag.hpp"

#ifdef QTN_CHECKS

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace qtn::capi {
namespace {

constinit std::atomic<unsigned> process{1};  ///< the number of forks that led to this one, and one

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] { ++process; });

}  // namespace

/// Lists by address. They need no memory of their own, and no lock that tests count as one of a call's.
struct Tag::Table {
  std::atomic<unsigned> holder{0};  ///< a process, so that a child takes what was held when its parent forked
  std::array<Tag *, 1024> lists{};

  void lock() {
    const unsigned here = process.load(std::memory_order_relaxed);
    for (unsigned seen = 0; seen == here || !holder.compare_exchange_weak(seen, here, std::memory_order_acquire);
         seen = holder.load(std::memory_order_relaxed)) {
    }
  }
  void unlock() { holder.store(0, std::memory_order_release); }

  static Table &get() {
    static constinit Table table;
    return table;
  }
  Tag *&list_of(const void *handle) { return lists[reinterpret_cast<std::uintptr_t>(handle) / 16 % lists.size()]; }
};

Tag::Tag(const void *handle, const char *noun) : handle_(handle), noun_(noun) {
  Table &table = Table::get();
  const std::lock_guard lock(table);
  next_ = table.list_of(handle_);
  table.list_of(handle_) = this;
}

// A copy lies in its own handle as the other does in its.
Tag::Tag(const Tag &other)
    : Tag(reinterpret_cast<const std::byte *>(this) -
              (reinterpret_cast<const std::byte *>(&other) - static_cast<const std::byte *>(other.handle_)),
          other.noun_) {}

Tag::~Tag() {
  Table &table = Table::get();
  const std::lock_guard lock(table);
  for (Tag **at = &table.list_of(handle_); *at; at = &(*at)->next_)
    if (*at == this) {
      *at = next_;
      return;
    }
}

const char *Tag::noun_at(const void *handle, const char *wanted) {
  Table &table = Table::get();
  const std::lock_guard lock(table);
  const char *found = nullptr;
  for (const Tag *tag = table.list_of(handle); tag; tag = tag->next_)
    if (tag->handle_ == handle && (!found || tag->noun_ == wanted)) found = tag->noun_;
  return found;
}

}  // namespace qtn::capi

#endif
