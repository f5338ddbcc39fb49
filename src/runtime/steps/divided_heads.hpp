// SPDX-License-Identifier: Apache-2.0
// How attention is divided: the rows of its heads among threads, and the rows of a thread into blocks whose scores stay
// in cache.
#pragma once

#include <algorithm>

#include "base/memory.hpp"
#include "runtime/step.hpp"

namespace qtn::runtime {

/// Floats of a line of cache: rows of scores that are multiples of it begin on one.
constexpr std::size_t kScoreLine = 16;

/// Up to so many rows of a head, packing keys and values takes longer than the products.
constexpr std::int64_t kFewQueries = 8;

/// How many of `rows` rows of scores, which are `row` floats apart, are worked on at a time: a multiple of the `at_once`
/// of a tile. They take half of a second level of cache of 256 KiB, and leave the rest to keys and values.
inline std::size_t score_block(std::size_t rows, std::size_t row, std::size_t at_once) {
  constexpr std::size_t kScoreBytes = 128 << 10;
  const std::size_t fit = kScoreBytes / sizeof(float) / row;
  return std::clamp<std::size_t>(fit / at_once * at_once, at_once, round_up(rows, at_once));
}

/// Heads of rows, which threads take whole. Few heads are shared by threads, each of which packs the keys.
class DividedHeads {
 public:
  DividedHeads() = default;
  DividedHeads(std::size_t heads, std::size_t rows, std::size_t at_once)
      : heads_(heads),
        rows_(rows),
        parts_(
            std::min(ceil_div(rows, kLeastTiles * at_once), ceil_div(kEnoughParts, std::max<std::size_t>(1, heads)))) {}

  /// body(lane, head, first, last) for rows [first, last) of each head, in parallel; all of them take `ns` nanoseconds.
  template <class Body>
  void for_each(const Context &c, std::size_t ns, const Body &body) const {
    const std::size_t rows = ceil_div(rows_, parts_);
    for_ranges(c, heads_ * parts_, ns, [&](std::size_t lane, std::size_t begin, std::size_t end) {
      // Parts of a head that follow one another are one part.
      for (std::size_t chunk = begin, next; chunk < end; chunk = next) {
        const std::size_t head = chunk / parts_, top = head * parts_;
        next = std::min(end, top + parts_);
        const std::size_t first = (chunk - top) * rows, last = std::min(rows_, (next - top) * rows);
        if (first < last) body(lane, static_cast<std::int64_t>(head), first, last);
      }
    });
  }

 private:
  static constexpr std::size_t kEnoughParts = 8;  // of all heads together, for as many threads
  static constexpr std::size_t kLeastTiles = 4;   // of rows in a part, which are worth packing the keys for

  std::size_t heads_ = 0, rows_ = 0, parts_ = 1;
};

}  // namespace qtn::runtime
