// SPDX-License-Identifier: Apache-2.0
#include "base/pool.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace qtn {
namespace {

// Longer than a network computes on one thread between steps for several, shorter than anyone notices.
constexpr std::chrono::microseconds kAwake{100};

// A lane's pieces: enough that threads end at about the same time when one takes from another.
constexpr std::size_t kPiecesOfLane = 4;

/// Pieces [begin, end) of a job.
struct Pieces {
  std::uint32_t job;
  std::uint16_t begin, end;

  explicit Pieces(std::uint64_t bits)
      : job(static_cast<std::uint32_t>(bits >> 32)),
        begin(static_cast<std::uint16_t>(bits >> 16)),
        end(static_cast<std::uint16_t>(bits)) {}
  Pieces(std::uint32_t number, std::size_t first, std::size_t last)
      : job(number), begin(static_cast<std::uint16_t>(first)), end(static_cast<std::uint16_t>(last)) {}
  std::uint64_t bits() const { return std::uint64_t{job} << 32 | std::uint64_t{begin} << 16 | end; }
};

struct Current {
  std::uint32_t job;
  std::size_t lanes;

  explicit Current(std::uint64_t bits) : job(static_cast<std::uint32_t>(bits >> 32)), lanes(bits & 0xffffffff) {}
  Current(std::uint32_t number, std::size_t count) : job(number), lanes(count) {}
  std::uint64_t bits() const { return std::uint64_t{job} << 32 | lanes; }
};

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb");
#endif
}

/// Looks again and again until there is something to see, or the time is up: false.
template <class Seen>
bool watch(Seen seen) {
  const auto end = std::chrono::steady_clock::now() + kAwake;
  do {
    for (int i = 0; i < 32; ++i) {
      if (seen()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace

Pool::Pool() : shares_(std::make_unique<Share[]>(kMaxLanes)) {}

Pool::~Pool() {
  stopping_.store(true);
  calls_.fetch_add(1);
  calls_.notify_all();
  for (std::thread &thread : threads_) thread.join();
}

void Pool::start(std::size_t threads) {
  if (thread_count_.load(std::memory_order_acquire) >= threads) return;
  const std::lock_guard lock(starting_);
  try {
    threads_.reserve(threads);
    while (threads_.size() < threads) {
      const std::size_t lane = threads_.size() + 1;
      threads_.emplace_back([this, lane] { live(lane); });
    }
  } catch (const std::exception &) {
    // No more threads, or no memory for them: those there are do the work.
  }
  thread_count_.store(threads_.size(), std::memory_order_release);
}

void Pool::run(std::size_t lanes, std::size_t count, Task task, void *context) {
  lanes = std::min({lanes, count, kMaxLanes});
  if (count == 0) return;
  if (lanes <= 1 || busy_.exchange(true, std::memory_order_acquire)) return task(context, 0, count, 0);
  start(lanes - 1);
  job_ = {task, context, count, std::min(count, lanes * kPiecesOfLane)};
  done_.store(0, std::memory_order_relaxed);
  const std::uint32_t number = Current(current_.load(std::memory_order_relaxed)).job + 1;
  for (std::size_t i = 0; i < lanes; ++i)
    shares_[i].bits.store(Pieces(number, i * job_.pieces / lanes, (i + 1) * job_.pieces / lanes).bits(),
                          std::memory_order_release);
  current_.store(Current(number, lanes).bits());  // in one order with sleepers_: see live()
  if (sleepers_.load() > 0) {
    calls_.fetch_add(1);
    calls_.notify_all();
  }
  work(number, lanes, 0);
  const auto done = [&] { return done_.load(std::memory_order_acquire) == job_.pieces; };
  while (!watch(done)) sched_yield();
  busy_.store(false, std::memory_order_release);
}

void Pool::work(std::uint32_t number, std::size_t lanes, std::size_t lane) {
  for (std::size_t i = 0; i < lanes; ++i) {
    const bool own = i == 0;
    std::atomic<std::uint64_t> &share = shares_[(lane + i) % lanes].bits;
    std::uint64_t bits = share.load(std::memory_order_acquire);
    for (;;) {
      Pieces left(bits);
      if (left.job != number || left.begin == left.end) break;
      // Others take from the end: what is far from what the owner is about.
      const std::size_t piece = own ? left.begin++ : --left.end;
      if (!share.compare_exchange_weak(bits, left.bits(), std::memory_order_acq_rel, std::memory_order_acquire))
        continue;
      job_.task(job_.context, piece * job_.count / job_.pieces, (piece + 1) * job_.count / job_.pieces, lane);
      done_.fetch_add(1, std::memory_order_release);
      bits = share.load(std::memory_order_acquire);
    }
  }
}

void Pool::live(std::size_t lane) {
  std::uint32_t seen = 0;
  const auto called = [&] {
    const Current current(current_.load());
    return stopping_.load() || (current.job != seen && lane < current.lanes);
  };
  while (!stopping_.load()) {
    if (!watch(called)) {
      // Either the caller sees this sleeper after it has stored its job, or this thread sees the job.
      const std::uint32_t calls = calls_.load();
      sleepers_.fetch_add(1);
      if (!called()) calls_.wait(calls);
      sleepers_.fetch_sub(1);
      continue;
    }
    const Current current(current_.load(std::memory_order_acquire));
    work(current.job, current.lanes, lane);
    seen = current.job;
  }
}

}  // namespace qtn
