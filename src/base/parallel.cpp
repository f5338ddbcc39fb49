// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <fstream>
#include <mutex>
#include <string>

#include "base/error.hpp"
#include "base/float_scope.hpp"
#include "base/pool.hpp"

namespace qtn {
namespace {

int affinity_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

/// CPUs that the cgroup's quota allows, rounded up; 0 where there is no quota.
int quota_threads() {
  // "max 100000", or two files with a number each, which is -1 for none. Not read as numbers by a stream: it would ask
  // the program's locale how.
  std::string first, second;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2) {
    v2 >> first >> second;
  } else {
    std::ifstream q("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), p("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
    q >> first;
    p >> second;
  }
  std::int64_t quota = -1, period = 0;
  std::from_chars(first.data(), first.data() + first.size(), quota);
  std::from_chars(second.data(), second.data() + second.size(), period);
  return quota > 0 && period > 0 ? std::max(1, static_cast<int>((quota - 1) / period + 1)) : 0;
}

/// The process's pool. After fork only the calling thread exists, so the child lets the parent's pool go, without
/// joining threads that are not there, and makes its own.
class SharedPool {
 public:
  Pool &get() {
    if (Pool *pool = pool_.load(std::memory_order_acquire)) return *pool;
    static std::once_flag forks;
    std::call_once(forks, [] { pthread_atfork(nullptr, nullptr, forget); });
    auto *made = new Pool, *found = static_cast<Pool *>(nullptr);
    if (pool_.compare_exchange_strong(found, made)) return *made;
    delete made;
    return *found;
  }
  ~SharedPool() { delete pool_.exchange(nullptr); }

 private:
  static void forget();
  std::atomic<Pool *> pool_{nullptr};
};

SharedPool shared_pool;

void SharedPool::forget() { shared_pool.pool_.store(nullptr); }

std::atomic<int> process_threads{0};
thread_local int scope_threads = 0;
thread_local bool inside_parallel = false;

struct Job {
  void (*run)(void *, std::size_t, std::size_t, std::size_t);
  void *context;
  FloatMode float_mode;
};

void run_piece(void *context, std::size_t begin, std::size_t end, std::size_t lane) {
  const Job &job = *static_cast<const Job *>(context);
  const bool outer = inside_parallel;
  inside_parallel = true;
  const FloatScope scope(job.float_mode);
  job.run(job.context, begin, end, lane);
  inside_parallel = outer;
}

}  // namespace

int available_threads() {
  static const int count = [] {
    const int quota = quota_threads();
    return quota > 0 ? std::min(quota, affinity_threads()) : affinity_threads();
  }();
  return count;
}

int default_threads() {
  const int count = process_threads.load(std::memory_order_relaxed);
  return count > 0 ? count : available_threads();
}

void set_default_threads(int count) {
  if (count < 0 || count > 1024) fail(QTN_EINVAL, "threads: ", count, " is outside 0..1024");
  process_threads.store(count, std::memory_order_relaxed);
}

ThreadScope::ThreadScope(int count) : previous_(scope_threads) { scope_threads = count; }
ThreadScope::~ThreadScope() { scope_threads = previous_; }

int current_threads() {
  if (inside_parallel) return 1;
  return scope_threads > 0 ? scope_threads : default_threads();
}

void parallel_run(std::size_t lanes, std::size_t count,
                  void (*task)(void *context, std::size_t begin, std::size_t end, std::size_t lane), void *context) {
  lanes = std::min({lanes, count, static_cast<std::size_t>(current_threads())});
  if (lanes <= 1) {
    if (count > 0) task(context, 0, count, 0);
    return;
  }
  Job job{task, context, FloatScope::current()};
  shared_pool.get().run(lanes, count, run_piece, &job);
}

}  // namespace qtn
