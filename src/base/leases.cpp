// SPDX-License-Identifier: Apache-2.0
#include "base/leases.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <vector>

#include "base/size.hpp"
#include "base/stable_order.hpp"

namespace qtn {
namespace {

// Comparisons of leases that are needed at the same time, a small part of a second of them. Networks have a hundredth.
constexpr std::size_t kMostRivals = std::size_t{1} << 23;

/// Largest first, lowest free place. Nothing where too many are needed at the same time.
std::optional<Size> place_tightly(std::span<Lease> leases) {
  Size total = 0;
  std::size_t compared = 0;
  std::vector<const Lease *> placed, rivals;
  for (const std::size_t i :
       stable_order(leases.size(), [&](std::size_t a, std::size_t b) { return leases[a].bytes > leases[b].bytes; })) {
    Lease &lease = leases[i];
    rivals.clear();
    for (const Lease *other : placed)
      if (other->first <= lease.last && lease.first <= other->last) rivals.push_back(other);
    compared += placed.size() / 16 + rivals.size();
    if (compared > kMostRivals) return std::nullopt;
    std::sort(rivals.begin(), rivals.end(), [](const Lease *a, const Lease *b) { return a->place < b->place; });
    lease.place = 0;
    Size end = lease.bytes;
    for (const Lease *other : rivals) {
      if (end.value() <= other->place) break;
      lease.place = std::max(lease.place, other->place + other->bytes);
      end = Size(lease.place) + lease.bytes;
    }
    total = std::max(total.value(), end.value());
    placed.push_back(&lease);
  }
  return total;
}

/// As time goes: the smallest place that was given back and is large enough, or a new one.
Size place_quickly(std::span<Lease> leases) {
  struct Held {
    std::size_t last, place, bytes;
    bool operator>(const Held &other) const { return last > other.last; }
  };
  std::priority_queue<Held, std::vector<Held>, std::greater<>> held;
  std::multimap<std::size_t, std::size_t> free;  // bytes -> place
  Size total = 0;
  for (const std::size_t i :
       stable_order(leases.size(), [&](std::size_t a, std::size_t b) { return leases[a].first < leases[b].first; })) {
    Lease &lease = leases[i];
    for (; !held.empty() && held.top().last < lease.first; held.pop()) free.emplace(held.top().bytes, held.top().place);
    std::size_t bytes = lease.bytes;
    if (const auto found = free.lower_bound(bytes); found != free.end()) {
      bytes = found->first;
      lease.place = found->second;
      free.erase(found);
    } else {
      lease.place = total.value();
      total = total + bytes;
    }
    held.push({lease.last, lease.place, bytes});
  }
  return total;
}

}  // namespace

std::size_t place_leases(std::span<Lease> leases) {
  const std::optional<Size> total = place_tightly(leases);
  return (total ? *total : place_quickly(leases)).value();
}

}  // namespace qtn
