// SPDX-License-Identifier: Apache-2.0
// Counting values into bins on all threads. Counts are whole, so they do not depend on who counted what.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/memory.hpp"
#include "base/parallel.hpp"

namespace qtn::quant {

/// ++counts[place(v)] for each value; a place beyond the last bin counts nowhere.
template <class Place>
void count_values(std::span<const float> values, std::span<std::uint64_t> counts, const Place &place) {
  // Neighbouring values are often equal: what is counted in turns into several tables need not wait for itself.
  constexpr std::size_t kTables = 4, kChunk = std::size_t{1} << 15;
  const std::size_t bins = counts.size() + 1, chunks = ceil_div(values.size(), kChunk);
  const std::size_t lanes = std::min(chunks, static_cast<std::size_t>(current_threads()));
  std::vector<std::uint64_t> tables(lanes * kTables * bins);
  parallel_ranges(lanes, chunks, [&](std::size_t begin, std::size_t end, std::size_t lane) {
    std::uint64_t *table = tables.data() + lane * kTables * bins;
    const std::size_t stop = std::min(end * kChunk, values.size());
    for (std::size_t i = begin * kChunk; i < stop; ++i)
      ++table[i % kTables * bins + std::min<std::size_t>(place(values[i]), bins - 1)];
  });
  for (std::size_t t = 0; t < lanes * kTables; ++t)
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += tables[t * bins + i];
}

}  // namespace qtn::quant
