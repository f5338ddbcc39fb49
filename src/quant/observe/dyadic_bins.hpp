// SPDX-License-Identifier: Apache-2.0
// A histogram that keeps its size while its range grows. Bins are [i * 2^e, (i + 1) * 2^e); when the values no longer
// fit the number of bins, e grows and pairs of bins become one. Counts therefore depend on the values alone, not on
// their order or on how they were spread: adding up is exact.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace qtn::quant {

/// Counts of values other than zero, which would outnumber all others after a Relu.
struct DyadicBins {
  int exponent = 0;
  std::int64_t first = 0;             ///< index i of counts[0]
  std::vector<std::uint64_t> counts;  ///< empty: nothing seen
  float min = 0, max = 0;             ///< exact ends of what was seen
};

/// The same counts over a range that takes in [min, max] too, in at most `limit` bins.
DyadicBins widened(const DyadicBins &bins, float min, float max, std::int64_t limit);

/// Counts finite values. Returns how many were zero.
std::uint64_t add(DyadicBins &bins, std::span<const float> values, std::int64_t limit);

void add(DyadicBins &bins, const DyadicBins &more, std::int64_t limit);

}  // namespace qtn::quant
