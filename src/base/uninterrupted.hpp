// SPDX-License-Identifier: Apache-2.0
// Calls of the system that a signal may cut short: a program may have handlers without SA_RESTART, and some file
// systems give EINTR in any case.
#pragma once

#include <cerrno>

namespace qtn {

/// call() again and again until it is not EINTR that it fails with. Not for close(): the descriptor is gone.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace qtn
