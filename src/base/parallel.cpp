// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.hpp"

#include <pthread.h>
#include <pthreadpool.h>
#include <sched.h>
#include <unistd.h>
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/error.hpp"

namespace qtn {
namespace {

int affinity_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

/// CPUs that the cgroup's quota allows, rounded up; 0 where there is no quota.
int quota_threads() {
  double quota = -1, period = 0;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2) {
    std::string first;
    if (v2 >> first >> period && first != "max") quota = std::strtod(first.c_str(), nullptr);
  } else {
    std::ifstream q("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), p("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
    if (!(q >> quota && p >> period)) quota = -1;
  }
  return quota > 0 && period > 0 ? std::max(1, static_cast<int>((quota + period - 1) / period)) : 0;
}

struct PoolDelete {
  void operator()(pthreadpool *pool) const noexcept { pthreadpool_destroy(pool); }
};

class Pools;
Pools &pools();

/// One pool per thread count in use. After fork only the calling thread exists, so the child lets the parent's pools go
/// without joining threads that are not there.
class Pools {
 public:
  Pools() {
    // The lock is held across fork, so that the child never inherits it from a thread it does not have.
    pthread_atfork([] { pools().mutex_.lock(); }, [] { pools().mutex_.unlock(); }, [] { pools().mutex_.unlock(); });
  }
  pthreadpool *get(int threads) {
    const std::lock_guard lock(mutex_);
    if (owner_ != getpid()) {
      for (auto &[count, pool] : pools_) (void)pool.release();
      pools_.clear();
      owner_ = getpid();
    }
    auto &pool = pools_[threads];
    if (!pool) pool.reset(pthreadpool_create(static_cast<std::size_t>(threads)));
    return pool.get();
  }
  ~Pools() {
    if (owner_ != getpid())
      for (auto &[count, pool] : pools_) (void)pool.release();
  }

 private:
  std::mutex mutex_;
  pid_t owner_ = getpid();
  std::map<int, std::unique_ptr<pthreadpool, PoolDelete>> pools_;
};

Pools &pools() {
  static Pools all;
  return all;
}

std::atomic<int> process_threads{0};
thread_local int scope_threads = 0;
thread_local bool inside_parallel = false;

struct Task {
  void (*run)(void *, std::size_t);
  void *context;
};

// ThreadSanitizer does not see into the pool: that a task begins after the call that hands it out, and ends before that
// call returns, must be said.
#ifdef __SANITIZE_THREAD__
void given(Task &task) { __tsan_release(&task); }
void begun(Task &task) { __tsan_acquire(&task); }
void ended(Task &task) { __tsan_release(&task.context); }
void joined(Task &task) { __tsan_acquire(&task.context); }
#else
void given(Task &) {}
void begun(Task &) {}
void ended(Task &) {}
void joined(Task &) {}
#endif

void run_one(void *argument, std::size_t index) {
  Task &task = *static_cast<Task *>(argument);
  begun(task);
  const bool outer = inside_parallel;
  inside_parallel = true;
  task.run(task.context, index);
  inside_parallel = outer;
  ended(task);
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

void parallel_run(std::size_t count, void (*task)(void *context, std::size_t index), void *context) {
  const int threads = count > 1 ? current_threads() : 1;
  pthreadpool *pool = threads > 1 ? pools().get(threads) : nullptr;
  if (!pool) {
    for (std::size_t i = 0; i < count; ++i) task(context, i);
    return;
  }
  Task wrapped{task, context};
  given(wrapped);
  pthreadpool_parallelize_1d(pool, run_one, &wrapped, count, PTHREADPOOL_FLAG_YIELD_WORKERS);
  joined(wrapped);
}

}  // namespace qtn
