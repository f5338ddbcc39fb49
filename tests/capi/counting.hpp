// SPDX-License-Identifier: Apache-2.0
// Counts the allocations and the locks of a program that links counting.cpp.
#pragma once

namespace qtn::test {

struct Counts {
  long allocations;  ///< calls of operator new
  long locks;        ///< calls of pthread_mutex_lock
  long large;        ///< allocations of which each takes its pages from the system
};

/// Since the program began, on all threads.
Counts counts();

/// The allocations of body().
template <class Body>
Counts counts_of(Body &&body) {
  const Counts before = counts();
  body();
  const Counts after = counts();
  return {after.allocations - before.allocations, after.locks - before.locks, after.large - before.large};
}

}  // namespace qtn::test
