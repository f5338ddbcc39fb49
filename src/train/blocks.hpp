// SPDX-License-Identifier: Apache-2.0
// Sums in an order that does not depend on the number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/memory.hpp"
#include "base/parallel.hpp"

namespace qtn::train {

/// The sum of body(begin, end) over ranges that make up [0, count), each but the last of at least `least` indices.
template <class Body>
double sum_blocks(std::size_t count, std::size_t least, const Body &body) {
  constexpr std::size_t kMost = 64;
  std::array<double, kMost> sums{};
  const std::size_t size = std::max({least, ceil_div(count, kMost), std::size_t{1}});
  parallel_for(ceil_div(count, size),
               [&](std::size_t block) { sums[block] = body(block * size, std::min(count, (block + 1) * size)); });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace qtn::train
