// SPDX-License-Identifier: Apache-2.0
// Tiles of up to V::kRows rows of X by four rows of W, which the instruction sets share. `V` is one of them:
//
//   Bytes, kBytes                    a vector of elements
//   Sums, nothing()                  an accumulator, and an empty one
//   kShift                           what products() takes off the elements of X if W is int8
//   products<signed_w>(acc, x, w)
//   sums<is_signed>(acc, v)          the elements themselves
//   kTogether                        rows whose tile ends at once, and then the vectors of their four columns:
//   Results, Integers, Reals         of uint32, int32 and float
//   reduce<rows>(sums), repeated(row), row(results, r)
//
// A block of rows of W stays in L1 while all of X passes; the first tile adds them up on its way.
#pragma once

#include "kernels/dot/dot.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels {
namespace {

constexpr int kColumns = 4;
constexpr std::size_t kBlockBytes = 24 << 10;  ///< of W, in L1 beside a tile's rows of X
constexpr std::size_t kAhead = 4096;           ///< how early lines of W are asked for that are read for the first time

using Words = std::uint32_t __attribute__((vector_size(16)));
using Signed = std::int32_t __attribute__((vector_size(16)));
using Floats = float __attribute__((vector_size(16)));

/// For instruction sets that multiply uint8 by int8: dot(acc, u8, s8), and ones() of either.
template <class V>
struct MixedSigns {
  static constexpr int kShift = 0;

  template <bool signed_w, class Sums, class Bytes>
  [[gnu::always_inline]] static Sums products(Sums acc, Bytes x, Bytes w) {
    return signed_w ? V::dot(acc, x, w) : V::dot(acc, w, x);
  }
  template <bool is_signed, class Sums, class Bytes>
  [[gnu::always_inline]] static Sums sums(Sums acc, Bytes v) {
    return is_signed ? V::dot(acc, V::ones(), v) : V::dot(acc, v, V::ones());
  }
};

/// What four columns have in common for all rows.
struct Columns {
  const char *w[kColumns];
  Words offset, zw;  ///< acc = sum + offset - zw * sum of the row of X; parts may wrap around, the whole does not
  Floats multiplier, addend;
  std::size_t first, used;
};

template <class Four, class T>
Four load4(const T *p, std::size_t used) {
  Four v = {};
  if (used == kColumns)
    __builtin_memcpy(&v, p, sizeof v);
  else
    for (std::size_t i = 0; i < used; ++i) __builtin_memcpy(reinterpret_cast<T *>(&v) + i, p + i, sizeof(T));
  return v;
}

inline Columns columns_at(const DotArgs &args, std::size_t first) {
  Columns columns{};
  columns.first = first;
  const std::size_t left = first < args.n ? args.n - first : 0, used = left < kColumns ? left : kColumns;
  columns.used = used;
  // A missing column repeats the last.
  for (std::size_t c = 0; c < kColumns; ++c)
    columns.w[c] =
        static_cast<const char *>(args.w) + static_cast<std::ptrdiff_t>(c < used ? first + c : args.n - 1) * args.ldw;
  columns.multiplier = load4<Floats>(args.multiplier + first, used);
  if (args.addend) columns.addend = load4<Floats>(args.addend + first, used);
  if (args.bias) columns.offset = load4<Words>(args.bias + first, used);
  if (args.zw) {
    columns.zw = load4<Words>(args.zw + first, used);
    columns.offset += columns.zw * (static_cast<std::uint32_t>(args.zx) * static_cast<std::uint32_t>(args.k));
  }
  return columns;
}

template <class V, bool signed_w, int rows, bool add_w>
class Tile {
 public:
  Tile(const char *x, std::ptrdiff_t ldx, const Columns &columns) {
    unroll<rows>([&](auto i) { x_[i] = x + i * ldx; });
    unroll<kColumns>([&](auto j) { w_[j] = columns.w[j]; });
    unroll<rows>([&](auto i) { unroll<kColumns>([&](auto j) { sums_[i][j] = V::nothing(); }); });
    unroll<kColumns>([&](auto j) { w_sums_[0][j] = V::nothing(); });
  }

  void add(std::size_t k) {
    std::size_t at = 0;
    for (; at + V::kBytes <= k; at += V::kBytes) {
      if constexpr (add_w) unroll<kColumns>([&](auto j) { __builtin_prefetch(w_[j] + at + kAhead); });
      step([at](const char *p) { return V::load(p + at); });
    }
    if (at < k) step([at, left = k - at](const char *p) { return V::load_part(p + at, left); });
  }

  template <int first, int count>
  typename V::Results results() const {
    return V::template reduce<count>(sums_ + first);
  }
  Words w_sums() const { return V::row(V::template reduce<1>(w_sums_), Index<0>{}); }

 private:
  template <class Load>
  [[gnu::always_inline]] void step(const Load &load) {
    // The rows of X wait, not the columns, which are as many or more.
    typename V::Bytes x[rows];
    unroll<rows>([&](auto i) { x[i] = load(x_[i]); });
    unroll<kColumns>([&](auto j) {
      const typename V::Bytes w = load(w_[j]);
      if constexpr (add_w) w_sums_[0][j] = V::template sums<signed_w>(w_sums_[0][j], w);
      unroll<rows>([&](auto i) { sums_[i][j] = V::template products<signed_w>(sums_[i][j], x[i], w); });
    });
  }

  const char *x_[rows], *w_[kColumns];
  typename V::Sums sums_[rows][kColumns];
  typename V::Sums w_sums_[1][kColumns];
};

/// Takes the sums of W into account, whose integers are `shift` apart from those of X.
template <class V, bool signed_w>
Words less_w_sums(Words acc, Words w_sums, const DotArgs &args) {
  return acc - w_sums * static_cast<std::uint32_t>(args.zx - (signed_w ? V::kShift : 0));
}

inline void store(float *y, Floats v, std::size_t used) {
  if (used == kColumns)
    __builtin_memcpy(y, &v, sizeof v);
  else
    for (std::size_t c = 0; c < used; ++c) y[c] = v[c];
}

template <class V, bool signed_w, int rows, bool add_w>
[[gnu::always_inline]] inline void run_tile(const DotArgs &args, std::size_t i, Columns &columns) {
  Tile<V, signed_w, rows, add_w> tile(static_cast<const char *>(args.x) + static_cast<std::ptrdiff_t>(i) * args.ldx,
                                      args.ldx, columns);
  tile.add(args.k);
  if constexpr (add_w) columns.offset = less_w_sums<V, signed_w>(columns.offset, tile.w_sums(), args);
  using Results = typename V::Results;
  using Integers = typename V::Integers;
  using Reals = typename V::Reals;
  const auto repeated = [](Floats v) { return reinterpret_cast<Reals>(V::repeated(reinterpret_cast<Words>(v))); };
  float *to = args.y + static_cast<std::ptrdiff_t>(i) * args.ldy + static_cast<std::ptrdiff_t>(columns.first);
  constexpr int kTogether = V::kTogether;
  unroll<(rows + kTogether - 1) / kTogether>([&](auto part) {
    constexpr int kFirst = part * kTogether, kCount = rows - kFirst < kTogether ? rows - kFirst : kTogether;
    Results acc = tile.template results<kFirst, kCount>() + V::repeated(columns.offset);
    if (args.zw) {
      Words shift[kTogether] = {};
      for (int r = 0; r < kCount; ++r)
        shift[r] = columns.zw * static_cast<std::uint32_t>(args.x_sum[i + kFirst + static_cast<std::size_t>(r)]);
      Results shifts;
      __builtin_memcpy(&shifts, shift, sizeof shifts);
      acc -= shifts;
    }
    Reals y = __builtin_convertvector(reinterpret_cast<Integers>(acc), Reals) * repeated(columns.multiplier);
    if (args.addend) y += repeated(columns.addend);
    unroll<kCount>([&](auto r) {
      store(to + (kFirst + r) * args.ldy, reinterpret_cast<Floats>(V::row(reinterpret_cast<Results>(y), r)),
            columns.used);
    });
  });
}

/// One row of X alone, by the columns of several groups at once: what ends a tile would take longer than the tile. The
/// sums of W are rows of the same results.
template <class V, bool signed_w>
class RowTile {
 public:
  static constexpr int kGroups = V::kRows / 2;

  RowTile(const char *x, const Columns *groups) : x_(x), groups_(groups) {
    unroll<2 * kGroups>([&](auto i) { unroll<kColumns>([&](auto j) { sums_[i][j] = V::nothing(); }); });
  }

  void add(std::size_t k) {
    std::size_t at = 0;
    for (; at + V::kBytes <= k; at += V::kBytes)
      step([at](const char *p) {
        __builtin_prefetch(p + at + kAhead);
        return V::load(p + at);
      });
    if (at < k) step([at, left = k - at](const char *p) { return V::load_part(p + at, left); });
  }

  void store_to(const DotArgs &args) const {
    unroll<kGroups>([&](auto g) {
      const Columns &columns = groups_[g];
      Words acc = row<2 * g>() + columns.offset;
      acc = less_w_sums<V, signed_w>(acc, row<2 * g + 1>(), args);
      if (args.zw) acc -= columns.zw * static_cast<std::uint32_t>(args.x_sum[0]);
      const Floats v = __builtin_convertvector(reinterpret_cast<Signed>(acc), Floats) * columns.multiplier;
      store(args.y + columns.first, args.addend ? v + columns.addend : v, columns.used);
    });
  }

 private:
  template <class Load>
  [[gnu::always_inline]] void step(const Load &load) {
    const typename V::Bytes x = load(x_);
    unroll<kGroups>([&](auto g) {
      unroll<kColumns>([&](auto j) {
        const typename V::Bytes w = load(groups_[g].w[j]);
        sums_[2 * g][j] = V::template products<signed_w>(sums_[2 * g][j], x, w);
        sums_[2 * g + 1][j] = V::template sums<signed_w>(sums_[2 * g + 1][j], w);
      });
    });
  }

  template <int r>
  Words row() const {
    constexpr int kFirst = r / V::kTogether * V::kTogether;
    return V::row(V::template reduce<V::kTogether>(sums_ + kFirst), Index<r - kFirst>{});
  }

  const char *x_;
  const Columns *groups_;
  typename V::Sums sums_[2 * kGroups][kColumns];
};

template <class V, bool signed_w>
void run_row(const DotArgs &args) {
  constexpr std::size_t kGroups = RowTile<V, signed_w>::kGroups;
  for (std::size_t j = 0; j < args.n; j += kGroups * kColumns) {
    Columns groups[kGroups];
    for (std::size_t g = 0; g < kGroups; ++g) groups[g] = columns_at(args, j + g * kColumns);
    RowTile<V, signed_w> tile(static_cast<const char *>(args.x), groups);
    tile.add(args.k);
    tile.store_to(args);
  }
}

/// Not inlined: a function of tiles of several kinds would keep the sums of each in memory.
template <class V, bool signed_w, int rows, bool add_w>
[[gnu::noinline]] void run_tiles(const DotArgs &args, std::size_t i, std::span<Columns> block) {
  for (Columns &columns : block) run_tile<V, signed_w, rows, add_w>(args, i, columns);
}

template <class V, bool signed_w, bool add_w>
void run_rows(const DotArgs &args, std::size_t i, std::size_t count, std::span<Columns> block) {
  unroll<V::kRows>([&](auto less) {
    if (count == less + 1) run_tiles<V, signed_w, less + 1, add_w>(args, i, block);
  });
}

template <class V, bool signed_w>
void run_blocks(const DotArgs &args) {
  constexpr std::size_t kRows = V::kRows, kMostGroups = 16;
  const std::size_t fit = kBlockBytes / (kColumns * args.k), groups = fit < 1             ? 1
                                                                      : fit < kMostGroups ? fit
                                                                                          : kMostGroups;
  for (std::size_t j = 0; j < args.n; j += groups * kColumns) {
    Columns block[kMostGroups];
    std::size_t used = 0;
    for (; used < groups && j + used * kColumns < args.n; ++used) block[used] = columns_at(args, j + used * kColumns);
    for (std::size_t i = 0; i < args.m; i += kRows) {
      const std::size_t count = args.m - i < kRows ? args.m - i : kRows;
      i == 0 ? run_rows<V, signed_w, true>(args, i, count, {block, used})
             : run_rows<V, signed_w, false>(args, i, count, {block, used});
    }
  }
}

template <class V>
void run_dot(const DotArgs &args) {
  if (args.m == 1) return args.signed_w ? run_row<V, true>(args) : run_row<V, false>(args);
  args.signed_w ? run_blocks<V, true>(args) : run_blocks<V, false>(args);
}

template <class V>
std::int32_t sum_of(const void *x, std::size_t k, bool is_signed) {
  typename V::Sums sums[1][kColumns] = {{V::nothing(), V::nothing(), V::nothing(), V::nothing()}};
  const auto add = [&](typename V::Sums &to, typename V::Bytes v) {
    to = is_signed ? V::template sums<true>(to, v) : V::template sums<false>(to, v);
  };
  const char *p = static_cast<const char *>(x);
  std::size_t at = 0;
  for (; at + V::kBytes <= k; at += V::kBytes) add(sums[0][0], V::load(p + at));
  if (at < k) add(sums[0][1], V::load_part(p + at, k - at));
  const Words both = V::row(V::template reduce<1>(sums), Index<0>{});
  return static_cast<std::int32_t>(both[0] + both[1]);
}

}  // namespace
}  // namespace qtn::kernels
