// SPDX-License-Identifier: Apache-2.0
// Sorting of few things, in one copy for all kinds of them: each kind that is given to std::stable_sort() costs the
// library up to ten kilobytes.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace qtn {

/// The numbers below `count`, sorted. Those of which neither comes before the other stay in their order.
std::vector<std::size_t> stable_order(std::size_t count, const std::function<bool(std::size_t, std::size_t)> &before);

/// The items in the order of `before`.
template <class T, class Before>
std::vector<T> stably_sorted(std::vector<T> items, Before before) {
  std::vector<T> sorted;
  sorted.reserve(items.size());
  for (const std::size_t i :
       stable_order(items.size(), [&](std::size_t a, std::size_t b) { return before(items[a], items[b]); }))
    sorted.push_back(std::move(items[i]));
  return sorted;
}

}  // namespace qtn
