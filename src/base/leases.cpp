// SPDX-License-Identifier: Apache-2.0
#include "base/leases.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace qtn {

std::size_t place_leases(std::span<Lease> leases) {
  std::vector<std::size_t> order(leases.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return leases[a].bytes > leases[b].bytes; });
  std::size_t total = 0;
  std::vector<const Lease *> placed, rivals;
  for (const std::size_t i : order) {
    Lease &lease = leases[i];
    rivals.clear();
    for (const Lease *other : placed)
      if (other->first <= lease.last && lease.first <= other->last) rivals.push_back(other);
    std::sort(rivals.begin(), rivals.end(), [](const Lease *a, const Lease *b) { return a->place < b->place; });
    lease.place = 0;
    for (const Lease *other : rivals) {
      if (lease.place + lease.bytes <= other->place) break;
      lease.place = std::max(lease.place, other->place + other->bytes);
    }
    total = std::max(total, lease.place + lease.bytes);
    placed.push_back(&lease);
  }
  return total;
}

}  // namespace qtn
