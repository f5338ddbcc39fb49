// SPDX-License-Identifier: Apache-2.0
#include "base/fork_gate.hpp"

#include <pthread.h>

#include <atomic>
#include <new>

namespace qtn {
namespace {

// Sections are its readers, which may be nested: readers do not wait for a writer that waits.
pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;

void close_gate() { pthread_rwlock_wrlock(&gate); }
void open_gate() { pthread_rwlock_unlock(&gate); }
/// The thread that locked it has another number here.
void renew_gate() { new (&gate) pthread_rwlock_t PTHREAD_RWLOCK_INITIALIZER; }

/// Without memory for the handlers, a fork does not wait; the next section asks again.
void register_handlers() {
  static std::atomic<int> state{0};  // 1: being registered, 2: registered
  int none = 0;
  if (state.load(std::memory_order_acquire) != 0 || !state.compare_exchange_strong(none, 1)) return;
  state.store(pthread_atfork(close_gate, open_gate, renew_gate) == 0 ? 2 : 0, std::memory_order_release);
}

}  // namespace

NoFork::NoFork() {
  register_handlers();
  pthread_rwlock_rdlock(&gate);
}

NoFork::~NoFork() { pthread_rwlock_unlock(&gate); }

}  // namespace qtn
