// SPDX-License-Identifier: Apache-2.0
// Counting values into bins on all threads. Counts are whole, so they do not depend on who counted what.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/memory.hpp"
#include "base/parallel.hpp"

namespace qtn::quant {

// A value has a slot: 0 counts nowhere, and bin i is slot i + 1.

/// The slot of a place counted in bins, which may lie anywhere; `last` is the last bin.
inline std::int32_t slot_at(float place, float last) {
  return static_cast<std::int32_t>(place < last ? (place > 0 ? place : 0.0f) : last) + 1;
}

/// What settles where no guess is unsure.
inline constexpr auto kAsGuessed = [](float, std::int32_t slot) { return static_cast<std::size_t>(slot); };

/// The slot of a value that guess(v) has given.
template <class Settle>
std::size_t settled(float v, std::int32_t guess, const Settle &settle) {
  return guess < 0 ? settle(v, ~guess) : static_cast<std::size_t>(guess);
}

/// Counts each value in its slot: guess(v), or settle(v, slot) where the guess is ~slot, unsure. `guess` has neither
/// branches nor tables, so that many values are guessed at once.
template <class Guess, class Settle>
void count_values(std::span<const float> values, std::span<std::uint64_t> counts, const Guess &guess,
                  const Settle &settle) {
  // Neighbouring values are often equal: what is counted in turns into several tables need not wait for itself.
  constexpr std::size_t kTables = 4, kChunk = std::size_t{1} << 15, kAtOnce = 256;
  const std::size_t slots = counts.size() + 1, chunks = ceil_div(values.size(), kChunk);
  const std::size_t lanes = std::min(chunks, static_cast<std::size_t>(current_threads()));
  std::vector<std::uint64_t> tables(lanes * kTables * slots);
  const auto count_chunks = [&, slots, guess, settle](std::size_t begin, std::size_t end, std::size_t lane) {
    std::uint64_t *table = tables.data() + lane * kTables * slots;
    std::array<std::int32_t, kAtOnce> guesses;
    const auto count = [&](const float *v, std::size_t i, std::size_t t) {
      ++table[t * slots + settled(v[i], guesses[i], settle)];
    };
    const auto count_in_turn = [&]<std::size_t... t>(const float *v, std::size_t i, std::index_sequence<t...>) {
      (count(v, i + t, t), ...);
    };
    const std::size_t stop = std::min(end * kChunk, values.size());
    for (std::size_t first = begin * kChunk; first < stop; first += kAtOnce) {
      const float *v = values.data() + first;
      const std::size_t some = std::min(kAtOnce, stop - first), turns = some / kTables * kTables;
      for (std::size_t i = 0; i < some; ++i) guesses[i] = guess(v[i]);
      for (std::size_t i = 0; i < turns; i += kTables) count_in_turn(v, i, std::make_index_sequence<kTables>());
      for (std::size_t i = turns; i < some; ++i) count(v, i, 0);
    }
  };
  parallel_ranges(lanes, chunks, count_chunks);
  for (std::size_t t = 0; t < lanes * kTables; ++t)
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += tables[t * slots + i + 1];
}

}  // namespace qtn::quant
