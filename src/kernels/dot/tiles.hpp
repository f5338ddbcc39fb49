// SPDX-License-Identifier: Apache-2.0
// Tiles of up to V::kRows rows of X by four rows of W, which the instruction sets share. `V` is one of them: Bytes of
// kBytes bytes, the accumulator Sums, and Results, which hold the four columns of kRows rows.
//
// A block of rows of W stays in L1 while all of X passes; the first tile adds them up on its way.
#pragma once

#include <immintrin.h>

#include "kernels/dot/dot.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels {
namespace {

constexpr int kColumns = 4;
constexpr std::size_t kBlockBytes = 24 << 10;  ///< of W, in L1 beside a tile's rows of X
constexpr std::size_t kAhead = 4096;           ///< how early lines of W are asked for that are read for the first time

/// What four columns have in common for all rows.
struct Columns {
  const char *w[kColumns];
  __m128i offset, zw;  ///< acc = sum + offset - zw * sum of the row of X; parts may wrap around, the whole does not
  __m128 multiplier, addend;
  std::size_t first, used;
};

template <class T>
__m128i load4(const T *p, std::size_t used) {
  if (used == kColumns) return _mm_loadu_si128(reinterpret_cast<const __m128i *>(p));
  alignas(16) T v[kColumns] = {};
  for (std::size_t i = 0; i < used; ++i) v[i] = p[i];
  return _mm_load_si128(reinterpret_cast<const __m128i *>(v));
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
  columns.multiplier = _mm_castsi128_ps(load4(args.multiplier + first, used));
  if (args.addend) columns.addend = _mm_castsi128_ps(load4(args.addend + first, used));
  if (args.bias) columns.offset = load4(args.bias + first, used);
  if (args.zw) {
    columns.zw = load4(args.zw + first, used);
    const __m128i all = _mm_mullo_epi32(_mm_set1_epi32(args.zx), _mm_set1_epi32(static_cast<int>(args.k)));
    columns.offset = _mm_add_epi32(columns.offset, _mm_mullo_epi32(columns.zw, all));
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
      if constexpr (add_w) unroll<kColumns>([&](auto j) { _mm_prefetch(w_[j] + at + kAhead, _MM_HINT_T0); });
      step([at](const char *p) { return V::load(p + at); });
    }
    if (at < k) step([at, left = k - at](const char *p) { return V::load_part(p + at, left); });
  }

  typename V::Results results() const { return V::reduce(sums_); }
  __m128i w_sums() const { return V::row(V::reduce(w_sums_), Index<0>{}); }

 private:
  template <class Load>
  [[gnu::always_inline]] void step(const Load &load) {
    typename V::Bytes w[kColumns];
    unroll<kColumns>([&](auto j) {
      w[j] = load(w_[j]);
      if constexpr (add_w)
        w_sums_[0][j] = signed_w ? V::dot(w_sums_[0][j], V::ones(), w[j]) : V::dot(w_sums_[0][j], w[j], V::ones());
    });
    unroll<rows>([&](auto i) {
      const typename V::Bytes x = load(x_[i]);
      unroll<kColumns>(
          [&](auto j) { sums_[i][j] = signed_w ? V::dot(sums_[i][j], x, w[j]) : V::dot(sums_[i][j], w[j], x); });
    });
  }

  const char *x_[rows], *w_[kColumns];
  typename V::Sums sums_[rows][kColumns];
  typename V::Sums w_sums_[1][kColumns];
};

inline void store(float *y, __m128 v, std::size_t used) {
  if (used == kColumns) return _mm_storeu_ps(y, v);
  alignas(16) float lanes[kColumns];
  _mm_store_ps(lanes, v);
  for (std::size_t i = 0; i < used; ++i) y[i] = lanes[i];
}

template <class V, bool signed_w, int rows, bool add_w>
void run_tile(const DotArgs &args, std::size_t i, Columns &columns) {
  const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(i);
  Tile<V, signed_w, rows, add_w> tile(static_cast<const char *>(args.x) + row * args.ldx, args.ldx, columns);
  tile.add(args.k);
  if constexpr (add_w)
    columns.offset = _mm_sub_epi32(columns.offset, _mm_mullo_epi32(tile.w_sums(), _mm_set1_epi32(args.zx)));
  typename V::Results acc = V::add(tile.results(), V::repeated(columns.offset));
  if (args.zw) {
    alignas(64) std::int32_t shift[V::kRows][kColumns];
    for (int r = 0; r < rows; ++r)
      _mm_store_si128(reinterpret_cast<__m128i *>(shift[r]),
                      _mm_mullo_epi32(columns.zw, _mm_set1_epi32(args.x_sum[i + r])));
    acc = V::subtract(acc, V::load_results(shift));
  }
  const auto v = V::scale(acc, V::repeated(_mm_castps_si128(columns.multiplier)));
  const auto y = args.addend ? V::add_floats(v, V::repeated(_mm_castps_si128(columns.addend))) : v;
  float *to = args.y + row * args.ldy + static_cast<std::ptrdiff_t>(columns.first);
  unroll<rows>([&](auto r) { store(to + r * args.ldy, _mm_castsi128_ps(V::row(y, r)), columns.used); });
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
        _mm_prefetch(p + at + kAhead, _MM_HINT_T0);
        return V::load(p + at);
      });
    if (at < k) step([at, left = k - at](const char *p) { return V::load_part(p + at, left); });
  }

  void store_to(const DotArgs &args) const {
    const typename V::Results all = V::reduce(sums_);
    unroll<kGroups>([&](auto g) {
      const Columns &columns = groups_[g];
      const __m128i w_sums = V::row(all, Index<2 * g + 1>{});
      __m128i acc = _mm_add_epi32(V::row(all, Index<2 * g>{}), columns.offset);
      acc = _mm_sub_epi32(acc, _mm_mullo_epi32(w_sums, _mm_set1_epi32(args.zx)));
      if (args.zw) acc = _mm_sub_epi32(acc, _mm_mullo_epi32(columns.zw, _mm_set1_epi32(args.x_sum[0])));
      const __m128 v = _mm_mul_ps(_mm_cvtepi32_ps(acc), columns.multiplier);
      store(args.y + columns.first, args.addend ? _mm_add_ps(v, columns.addend) : v, columns.used);
    });
  }

 private:
  template <class Load>
  [[gnu::always_inline]] void step(const Load &load) {
    const typename V::Bytes x = load(x_);
    unroll<kGroups>([&](auto g) {
      unroll<kColumns>([&](auto j) {
        const typename V::Bytes w = load(groups_[g].w[j]);
        sums_[2 * g][j] = signed_w ? V::dot(sums_[2 * g][j], x, w) : V::dot(sums_[2 * g][j], w, x);
        sums_[2 * g + 1][j] =
            signed_w ? V::dot(sums_[2 * g + 1][j], V::ones(), w) : V::dot(sums_[2 * g + 1][j], w, V::ones());
      });
    });
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

template <class V, bool signed_w, bool add_w>
void run_rows(const DotArgs &args, std::size_t i, std::size_t count, Columns &columns) {
  unroll<V::kRows>([&](auto less) {
    if (count == less + 1) run_tile<V, signed_w, less + 1, add_w>(args, i, columns);
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
      for (std::size_t g = 0; g < used; ++g)
        i == 0 ? run_rows<V, signed_w, true>(args, i, count, block[g])
               : run_rows<V, signed_w, false>(args, i, count, block[g]);
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
    to = is_signed ? V::dot(to, V::ones(), v) : V::dot(to, v, V::ones());
  };
  const char *p = static_cast<const char *>(x);
  std::size_t at = 0;
  for (; at + V::kBytes <= k; at += V::kBytes) add(sums[0][0], V::load(p + at));
  if (at < k) add(sums[0][1], V::load_part(p + at, k - at));
  const __m128i both = V::row(V::reduce(sums), Index<0>{});
  return _mm_cvtsi128_si32(both) + _mm_extract_epi32(both, 1);
}

}  // namespace
}  // namespace qtn::kernels
