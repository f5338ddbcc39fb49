// SPDX-License-Identifier: Apache-2.0
// Work for several threads, behind two functions. Threads start at the first parallel run that needs them, are made
// again after fork, and never number more than affinity and the cgroup's CPU quota allow unless asked for by number.
#pragma once

#include <cstddef>
#include <type_traits>

namespace qtn {

/// Threads that affinity and cgroup allow this process, at least 1.
int available_threads();

/// The process default: what set_default_threads() was given, or available_threads() for 0.
int default_threads();
void set_default_threads(int count);

/// Makes `count` (0: the process default) the number of threads of parallel_for on this thread, for the object's
/// lifetime.
class ThreadScope {
 public:
  explicit ThreadScope(int count);
  ~ThreadScope();
  ThreadScope(const ThreadScope &) = delete;
  ThreadScope &operator=(const ThreadScope &) = delete;

 private:
  int previous_;
};

/// How many threads parallel_for would use here. 1 inside a parallel region.
int current_threads();

void parallel_run(std::size_t lanes, std::size_t count,
                  void (*task)(void *context, std::size_t begin, std::size_t end, std::size_t lane), void *context);

/// Calls body(begin, end, lane) for ranges that make up [0, count), in any order and on up to `lanes` threads; a lane
/// below `lanes` is one thread at a time. The body must not throw: a task that can fail records the failure. How the
/// work is split must not depend on the number of threads where rounding would.
template <class Body>
void parallel_ranges(std::size_t lanes, std::size_t count, Body &&body) {
  using Plain = std::remove_reference_t<Body>;
  parallel_run(
      lanes, count,
      [](void *context, std::size_t begin, std::size_t end, std::size_t lane) {
        (*static_cast<Plain *>(context))(begin, end, lane);
      },
      const_cast<void *>(static_cast<const void *>(&body)));
}

/// Calls body(i) for every i in [0, count), as parallel_ranges does.
template <class Body>
void parallel_for(std::size_t count, Body &&body) {
  parallel_ranges(count, count, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) body(i);
  });
}

}  // namespace qtn
