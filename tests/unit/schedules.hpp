// SPDX-License-Identifier: Apache-2.0
// Threads that take turns as a test says, so that all orders of what they do to atomic variables can be tried. What is
// included in the namespace `schedules` after this header has these threads, atomics and clocks in the place of those
// of std. Orders are those of one memory: what weaker ones allow is left to ThreadSanitizer.
#pragma once

#include <sched.h>
#include <ucontext.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "check.hpp"

namespace schedules {

/// What decides wherever there are several ways to go on.
class Choices {
 public:
  virtual ~Choices() = default;
  virtual std::size_t choose(std::size_t options) = 0;
};

/// One order after the other, until there are no more.
class EachOrder final : public Choices {
 public:
  std::size_t choose(std::size_t options) override {
    if (at_ == taken_.size()) taken_.push_back({0, options});
    return taken_[at_++].first;
  }
  bool next() {
    at_ = 0;
    while (!taken_.empty() && taken_.back().first + 1 == taken_.back().second) taken_.pop_back();
    if (taken_.empty()) return false;
    ++taken_.back().first;
    return true;
  }

 private:
  std::vector<std::pair<std::size_t, std::size_t>> taken_;  ///< which, of how many
  std::size_t at_ = 0;
};

class RandomOrder final : public Choices {
 public:
  explicit RandomOrder(unsigned seed) : random_(seed) {}
  std::size_t choose(std::size_t options) override { return random_() % options; }

 private:
  std::mt19937 random_;
};

/// Runs threads as coroutines, one at a time.
class Scheduler {
 public:
  /// Runs body and the threads that it starts to their ends. A thread that could go on is held up at most so often.
  static void run(Choices &choices, int interruptions, std::function<void()> body) {
    Scheduler scheduler(choices, interruptions);
    current = &scheduler;
    scheduler.start(std::move(body));
    swapcontext(&scheduler.outside_, &scheduler.threads_[0]->context);
    current = nullptr;
  }
  static Scheduler &now() { return *current; }

  std::size_t start(std::function<void()> body) {
    auto thread = std::make_unique<Thread>();
    thread->body = std::move(body);
    thread->stack.resize(std::size_t{1} << 17);
    getcontext(&thread->context);
    thread->context.uc_stack.ss_sp = thread->stack.data();
    thread->context.uc_stack.ss_size = thread->stack.size();
    thread->context.uc_link = nullptr;
    makecontext(&thread->context, &Scheduler::enter, 0);
    threads_.push_back(std::move(thread));
    return threads_.size() - 1;
  }
  std::size_t self() const { return self_; }
  void join(std::size_t thread) {
    while (threads_[thread]->state != State::ended) block(threads_[thread].get());
  }

  /// Before anything that others see: another thread may come first.
  void step() {
    if (++steps_ > kMostSteps) qtn::test::fail_test("no end after ", steps_, " steps");
    yield();
  }
  void written() { wake(State::spinning, nullptr); }

  /// Until another thread has written something, or for so long that a thread that looks at the clock gives up.
  void spin() {
    Thread &thread = *threads_[self_];
    if (thread.late) return;
    thread.late = interruptions_ > 0 && choices_.choose(2) == 1;
    if (thread.late) {
      --interruptions_;
      return;
    }
    thread.state = State::spinning;
    yield();
  }
  std::chrono::steady_clock::time_point time() {
    Thread &thread = *threads_[self_];
    if (thread.late) time_ += std::chrono::seconds(1);
    thread.late = false;
    return time_;
  }

  void block(const void *on) {
    threads_[self_]->state = State::blocked;
    threads_[self_]->on = on;
    yield();
  }
  void wake(const void *on) { wake(State::blocked, on); }

 private:
  enum class State { ready, spinning, blocked, ended };
  struct Thread {
    ucontext_t context;
    std::vector<std::byte> stack;
    std::function<void()> body;
    State state = State::ready;
    const void *on = nullptr;
    bool late = false;  ///< sees the time pass
  };
  static constexpr int kMostSteps = 100000;

  Scheduler(Choices &choices, int interruptions) : choices_(choices), interruptions_(interruptions) {}

  static void enter() {
    Scheduler &s = now();
    s.threads_[s.self_]->body();
    s.threads_[s.self_]->state = State::ended;
    s.wake(s.threads_[s.self_].get());
    s.yield();
  }

  void wake(State state, const void *on) {
    for (const auto &thread : threads_)
      if (thread->state == state && (state == State::spinning || thread->on == on)) thread->state = State::ready;
  }

  void yield() {
    const std::size_t from = self_;
    const bool goes_on = threads_[from]->state == State::ready;
    std::vector<std::size_t> ready;
    if (goes_on) ready.push_back(from);
    for (std::size_t i = 0; i < threads_.size(); ++i)
      if (i != from && threads_[i]->state == State::ready) ready.push_back(i);
    if (ready.empty()) {
      for (std::size_t i = 0; i < threads_.size(); ++i)
        if (threads_[i]->state == State::spinning) ready.push_back(i);
      if (ready.empty()) return leave();
      for (const std::size_t i : ready) threads_[i]->late = true;  // nobody writes: time passes
    }
    const bool is_free = !goes_on || interruptions_ > 0;
    const std::size_t next = ready.size() > 1 && is_free ? choices_.choose(ready.size()) : 0;
    if (goes_on && next > 0) --interruptions_;
    threads_[ready[next]]->state = State::ready;
    if (ready[next] == from) return;
    self_ = ready[next];
    swapcontext(&threads_[from]->context, &threads_[ready[next]]->context);
  }

  void leave() {
    for (const auto &thread : threads_)
      if (thread->state != State::ended) qtn::test::fail_test("threads wait for each other");
    setcontext(&outside_);
  }

  inline static thread_local Scheduler *current = nullptr;
  Choices &choices_;
  int interruptions_, steps_ = 0;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::size_t self_ = 0;
  std::chrono::steady_clock::time_point time_{};
  ucontext_t outside_;
};

inline int sched_yield() {
  Scheduler::now().spin();
  return 0;
}
inline void _mm_pause() { Scheduler::now().spin(); }

namespace std {
using namespace ::std;

template <class T>
class atomic {
 public:
  atomic() = default;
  constexpr atomic(T value) : value_(value) {}

  T load(memory_order = memory_order_seq_cst) const {
    Scheduler::now().step();
    return value_;
  }
  void store(T value, memory_order = memory_order_seq_cst) { exchange(value); }
  T exchange(T value, memory_order = memory_order_seq_cst) {
    return change([&](T) { return value; });
  }
  T fetch_add(T more, memory_order = memory_order_seq_cst) {
    return change([&](T value) { return value + more; });
  }
  T fetch_sub(T less, memory_order = memory_order_seq_cst) {
    return change([&](T value) { return value - less; });
  }
  bool compare_exchange_weak(T &expected, T wanted, memory_order, memory_order) {
    const T before = change([&](T value) { return value == expected ? wanted : value; });
    return before == expected || (expected = before, false);
  }
  void wait(T old) const {
    while (load() == old) Scheduler::now().block(this);
  }
  void notify_all() {
    Scheduler::now().step();
    Scheduler::now().wake(this);
  }

 private:
  template <class Change>
  T change(const Change &of) {
    Scheduler::now().step();
    const T before = value_;
    value_ = of(before);
    if (value_ != before) Scheduler::now().written();
    return before;
  }

  T value_{};
};

class mutex {
 public:
  void lock() {
    Scheduler::now().step();
    while (locked_) Scheduler::now().block(this);
    locked_ = true;
  }
  void unlock() {
    locked_ = false;
    Scheduler::now().wake(this);
  }

 private:
  bool locked_ = false;
};

class thread {
 public:
  using id = size_t;

  explicit thread(function<void()> body) : number_(Scheduler::now().start(::std::move(body))) {}
  void join() { Scheduler::now().join(number_); }

 private:
  id number_;
};

namespace this_thread {
inline thread::id get_id() { return Scheduler::now().self(); }
}  // namespace this_thread

namespace chrono {
using namespace ::std::chrono;
struct steady_clock {
  static ::std::chrono::steady_clock::time_point now() { return Scheduler::now().time(); }
};
}  // namespace chrono
}  // namespace std
}  // namespace schedules
