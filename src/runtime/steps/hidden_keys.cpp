// SPDX-License-Identifier: Apache-2.0
#include "runtime/steps/hidden_keys.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qtn::runtime {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNothing = 200;  // less than what is this far below another score has an exponential of 0 beside it

std::size_t tile_before(std::size_t end) { return (end - 1) / kKeysAtOnce * kKeysAtOnce; }

/// What is added to the scores of some queries.
struct Addends {
  const float *at;
  std::ptrdiff_t row;
  std::size_t queries;

  std::span<const float> of_query(std::size_t query, std::size_t begin, std::size_t end) const {
    return {at + static_cast<std::ptrdiff_t>(query) * row + begin, end - begin};
  }
  bool hide(std::size_t query, std::size_t begin, std::size_t end, float hides) const {
    const std::span<const float> some = of_query(query, begin, end);
    int seen = 0;  // all of them are looked at, by as many at a time as a vector has
    if (some.size() == kKeysAtOnce)
      for (std::size_t i = 0; i < kKeysAtOnce; ++i) seen |= !(some[i] <= hides);
    else
      for (const float addend : some) seen |= !(addend <= hides);
    return seen == 0;
  }
  /// The end of the keys that some query sees. The last one, which often sees most, comes first.
  std::size_t sight(std::size_t keys, float hides) const {
    std::size_t sight = 0;
    for (std::size_t query = queries; query-- > 0 && sight < keys;)
      for (std::size_t end = keys, begin; end > sight; end = begin) {
        begin = tile_before(end);
        if (!hide(query, begin, end, hides)) sight = end;
      }
    return sight;
  }
  /// Whether a query sees one of the first `end` keys, near the end of which most do.
  bool leave_some(std::size_t query, std::size_t end) const {
    const std::span<const float> all = of_query(query, 0, end);
    return std::find_if(all.rbegin(), all.rend(), [](float addend) { return addend >= 0; }) != all.rend();
  }
  bool leave_some(std::size_t end) const {
    for (std::size_t query = 0; query < queries; ++query)
      if (!leave_some(query, end)) return false;
    return true;
  }
};

}  // namespace

std::size_t HiddenKeys::in_sight(const HeadMatrix &queries, std::size_t count, const ScoreChange &change) {
  const Addends addends{change.addend, change.addend_row, count};
  const std::size_t keys = sizes_.keys;
  const std::size_t last = count - 1, tile = tile_before(keys);
  if (!addends.hide(last, tile, keys, -kNothing) || !addends.leave_some(last, tile)) return keys;
  // Twice the largest score, since a mean may be off the keys, and between any two; the rest is for rounding.
  const float most = 2.1f * static_cast<float>(sizes_.features) * peak(queries, count, sizes_.features) * key_peak(),
              hides = -2 * most * std::fabs(change.factor) - kNothing;
  if (!std::isfinite(hides)) return keys;
  const std::size_t sight = addends.sight(keys, hides);
  return sight < keys && addends.leave_some(sight) ? sight : keys;
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
  float peak = 0;
  for (std::size_t i = 0; i < (by_row ? rows : columns); ++i) {
    const float *first = m.at + static_cast<std::ptrdiff_t>(i) * (by_row ? m.row : m.column);
    const kernels::FloatRange range = grid_.range(first, by_row ? columns : rows);
    peak = range.nan ? kInfinity : std::max({peak, -range.min, range.max});
  }
  return peak;
}

}  // namespace qtn::runtime
