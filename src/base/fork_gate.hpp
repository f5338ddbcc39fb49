// SPDX-License-Identifier: Apache-2.0
// Locks and fork(): the child has one thread, and what another one held would stay locked in it for good. So a fork
// waits until no thread is inside of a section that locks.
#pragma once

namespace qtn {

/// A section that locks something, or makes what is made once. May be nested; must not call what may fork.
class NoFork {
 public:
  NoFork();
  ~NoFork();
  NoFork(const NoFork &) = delete;
  NoFork &operator=(const NoFork &) = delete;
};

}  // namespace qtn
