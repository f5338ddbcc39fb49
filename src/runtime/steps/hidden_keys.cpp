// SPDX-License-Identifier: Apache-2.0
#include "runtime/steps/hidden_keys.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace qtn::runtime {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNothing = 200;  // less than what is this far below another score has an exponential of 0 beside it

std::size_t tile_before(std::size_t end) { return (end - 1) / kKeysAtOnce * kKeysAtOnce; }

/// A mask for some queries, which hides by numbers up to `hides`.
class Sight {
 public:
  Sight(const ScoreMask &mask, std::size_t queries, float hides) : mask_(mask), queries_(queries), hides_(hides) {}

  /// The keys of a tile by one part of the mask: a tile that needs both counts as seen.
  bool is_hidden(std::size_t query, std::size_t begin, std::size_t end) const {
    const bool none_kept = mask_.chosen && keeps_none(query, begin, end);
    return none_kept ? adds_at_most(0, query, begin, end) : mask_.addend && adds_at_most(hides_, query, begin, end);
  }

  /// The end of the keys that some query sees. The last one, which often sees most, comes first.
  std::size_t end(std::size_t keys) const {
    std::size_t sight = 0;
    for (std::size_t query = queries_; query-- > 0 && sight < keys;)
      for (std::size_t end = keys, begin; end > sight; end = begin) {
        begin = tile_before(end);
        if (!is_hidden(query, begin, end)) sight = end;
      }
    return sight;
  }

  /// Whether a query sees one of the first `end` keys, near the end of which most do.
  bool has_some(std::size_t query, std::size_t end) const {
    const float *addend = of_query(mask_.addend, mask_.addend_row, query, 0);
    const std::uint8_t *chosen = of_query(mask_.chosen, mask_.chosen_row, query, 0);
    while (end-- > 0)
      if ((!addend || addend[end] >= 0) && (!chosen || (chosen[end] != 0) == mask_.keeps)) return true;
    return false;
  }
  bool has_some(std::size_t end) const {
    for (std::size_t query = 0; query < queries_; ++query)
      if (!has_some(query, end)) return false;
    return true;
  }

 private:
  /// Bytes beside 0 and 1 count as kept.
  bool keeps_none(std::size_t query, std::size_t begin, std::size_t end) const {
    const std::uint8_t *chosen = of_query(mask_.chosen, mask_.chosen_row, query, begin);
    std::array<std::uint8_t, kKeysAtOnce> others;
    others.fill(mask_.keeps ? 0 : 1);
    return std::memcmp(chosen, others.data(), end - begin) == 0;
  }

  /// All are looked at, by as many at a time as a vector has.
  bool adds_at_most(float most, std::size_t query, std::size_t begin, std::size_t end) const {
    const float *addend = of_query(mask_.addend, mask_.addend_row, query, begin);
    if (!addend) return true;
    int seen = 0;
    if (end - begin == kKeysAtOnce)
      for (std::size_t i = 0; i < kKeysAtOnce; ++i) seen |= !(addend[i] <= most);
    else
      for (std::size_t i = 0; i < end - begin; ++i) seen |= !(addend[i] <= most);
    return seen == 0;
  }

  template <class T>
  static const T *of_query(const T *all, std::ptrdiff_t row, std::size_t query, std::size_t key) {
    return all ? all + static_cast<std::ptrdiff_t>(query) * row + key : nullptr;
  }

  const ScoreMask &mask_;
  std::size_t queries_;
  float hides_;
};

}  // namespace

std::size_t HiddenKeys::in_sight(const HeadMatrix &queries, std::size_t count, float factor, const ScoreMask &mask) {
  const std::size_t keys = sizes_.keys, last = count - 1, tile = tile_before(keys);
  const Sight near(mask, count, -kNothing);
  if (!mask || !near.is_hidden(last, tile, keys) || !near.has_some(last, tile)) return keys;
  // Twice the largest score, since a mean may be off the keys, and between any two; the rest is for rounding.
  const float most = 2.1f * static_cast<float>(sizes_.features) * peak(queries, count, sizes_.features) * key_peak(),
              hides = -2 * most * std::fabs(factor) - kNothing;
  if (!std::isfinite(hides) || (mask.chosen && !(mask.filler <= hides))) return keys;
  const Sight far(mask, count, hides);
  const std::size_t sight = far.end(keys);
  return sight < keys && far.has_some(sight) ? sight : keys;
}

/// Infinite where a value is not finite, which makes what it is multiplied with not a number.
float HiddenKeys::key_peak() {
  if (key_peak_) return *key_peak_;
  key_peak_ = 0;
  for (const HeadPart &part : parts_) {
    key_peak_ = std::max(*key_peak_, peak(part.keys, sizes_.features, part.count));
    if (peak(part.values, part.count, sizes_.values) == kInfinity) key_peak_ = kInfinity;
  }
  return *key_peak_;
}

/// The largest magnitude; infinite where an element is not a number.
float HiddenKeys::peak(const HeadMatrix &m, std::size_t rows, std::size_t columns) const {
  const bool by_row = m.column == 1;
  const std::size_t lines = by_row ? rows : columns, length = by_row ? columns : rows;
  const std::ptrdiff_t line = by_row ? m.row : m.column, step = by_row ? m.column : m.row;
  const std::size_t at_once = step == 1 ? length : 1;  // elements side by side
  float peak = 0;
  for (std::size_t i = 0; i < lines; ++i)
    for (std::size_t j = 0; j < length; j += at_once) {
      const float *first = m.at + static_cast<std::ptrdiff_t>(i) * line + static_cast<std::ptrdiff_t>(j) * step;
      const kernels::FloatRange range = grid_.range(first, at_once);
      peak = range.nan ? kInfinity : std::max({peak, -range.min, range.max});
    }
  return peak;
}

}  // namespace qtn::runtime
