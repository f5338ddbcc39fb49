// SPDX-License-Identifier: Apache-2.0
// Threads that share one job at a time.
//
// Every lane has pieces of its own, the same of every job of one size: what it wrote in one step of a network is in its
// CPU's cache for the next. A thread that has done its own takes from the others, so none waits for a thread that does
// not get its turn because another process wants the CPU. Threads without work look for some for a short while, then
// sleep.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace qtn {

class Pool {
 public:
  /// Does [begin, end) as `lane`, which no other thread is at the same time. Must not throw.
  using Task = void (*)(void *context, std::size_t begin, std::size_t end, std::size_t lane);

  static constexpr std::size_t kMaxLanes = 1024;

  Pool();
  ~Pool();
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;

  /// Calls `task` for pieces that make up [0, count), on this thread and lanes - 1 others. While another thread's job
  /// runs, this thread does all of its own. Takes no lock but to start threads.
  void run(std::size_t lanes, std::size_t count, Task task, void *context);

 private:
  struct Job {
    Task task;
    void *context;
    std::size_t count, pieces;
  };
  /// The pieces of a lane that no thread has taken, and of which job. A thread that takes one may read job_ until it is
  /// done.
  struct alignas(64) Share {
    std::atomic<std::uint64_t> bits{0};
  };

  void start(std::size_t threads);
  void work(std::uint32_t number, std::size_t lanes, std::size_t lane);
  void live(std::size_t lane);

  Job job_{};
  std::atomic<std::uint64_t> current_{0};  ///< number of the job and of its lanes
  std::atomic<std::size_t> done_{0};       ///< pieces
  std::unique_ptr<Share[]> shares_;
  std::atomic<bool> busy_{false}, stopping_{false};
  std::atomic<std::uint32_t> sleepers_{0}, calls_{0};
  std::mutex starting_;
  std::atomic<std::size_t> thread_count_{0};
  std::vector<std::thread> threads_;
};

}  // namespace qtn
