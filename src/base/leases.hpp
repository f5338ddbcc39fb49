// SPDX-License-Identifier: Apache-2.0
// Places in one piece of memory for things that are needed for a while each.
#pragma once

#include <cstddef>
#include <span>

namespace qtn {

struct Lease {
  std::size_t first, last;  ///< the times from and to which it is needed, both included
  std::size_t bytes;
  std::size_t place = 0;  ///< from the start of the memory
};

/// Gives each a place: what is needed at the same time never overlaps. Largest first, lowest free place, unless that
/// would take long. Returns the bytes that all together take; throws QTN_ENOMEM where no number holds them. Sizes
/// should be multiples of an alignment: places are sums of them.
std::size_t place_leases(std::span<Lease> leases);

}  // namespace qtn
