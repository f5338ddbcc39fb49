// SPDX-License-Identifier: Apache-2.0
// Integers that lie in the order of elements, so that one way to compare and sort is enough for all types.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace qtn::ops {

/// As wide as the elements, so that vectors hold as many.
template <class T>
using RankOf = std::conditional_t<sizeof(T) <= 4, std::int32_t, std::int64_t>;

/// NaN is above all, as in NumPy and PyTorch, and the zeros are equal.
template <class T>
RankOf<T> rank_of(T v) {
  using Rank = RankOf<T>;
  using Limits = std::numeric_limits<Rank>;
  if constexpr (std::is_floating_point_v<T>) {
    const auto bits = std::bit_cast<Rank>(v + T{});
    return v != v ? Limits::max() : bits ^ (bits >> Limits::digits & Limits::max());
  } else if constexpr (std::is_unsigned_v<T> && sizeof(T) == sizeof(Rank)) {
    return std::bit_cast<Rank>(v) ^ Limits::min();
  } else {
    return static_cast<Rank>(v);
  }
}

struct RankedPlace {
  std::int64_t rank, index;
  /// The better one; the first one where both are equal.
  bool operator<(const RankedPlace &b) const { return rank != b.rank ? rank < b.rank : index < b.index; }
};

}  // namespace qtn::ops
