// SPDX-License-Identifier: Apache-2.0
// The order of an epoch as a function of seed and epoch alone: std::shuffle gives another one with each standard
// library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace tool {

/// The finalizer of SplitMix64 (Steele, Lea and Flood, 2014): counters that differ in one bit give unrelated words.
constexpr uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

/// 0 to count - 1 in an order of this epoch.
inline std::vector<size_t> shuffled(size_t count, uint64_t seed, uint64_t epoch) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  const uint64_t stream = mixed(mixed(seed) ^ epoch);
  for (uint64_t left = count; left > 1; --left) std::swap(order[left - 1], order[mixed(stream ^ left) % left]);
  return order;
}

}  // namespace tool
