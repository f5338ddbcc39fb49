// SPDX-License-Identifier: Apache-2.0
// Tiles of up to V::kRows rows of X by four rows of W, which the instruction sets share. `V` is one of them: a Bytes of
// kBytes bytes and the accumulator Sums; reduce() adds up the lanes of four sums at a time.
//
// The four rows of W stay in L1 while all of X passes; the first tile adds them up on its way.
#pragma once

#include <immintrin.h>

#include "kernels/dot/dot.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels {
namespace {

constexpr int kColumns = 4;

/// What four columns have in common for all rows.
struct Columns {
  const char *w[kColumns];
  __m128i offset, zw;
  __m128 multiplier, addend;
  std::size_t used;
};

inline __m128i load4(const std::int32_t *p, std::size_t used) {
  alignas(16) std::int32_t v[kColumns] = {};
  __builtin_memcpy(v, p, used * sizeof *v);
  return _mm_load_si128(reinterpret_cast<const __m128i *>(v));
}
inline __m128 load4(const float *p, std::size_t used) {
  alignas(16) float v[kColumns] = {};
  __builtin_memcpy(v, p, used * sizeof *v);
  return _mm_load_ps(v);
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
    for (; at + V::kBytes <= k; at += V::kBytes) step([at](const char *p) { return V::load(p + at); });
    if (at < k) step([at, left = k - at](const char *p) { return V::load_part(p + at, left); });
  }

  void rows_of(__m128i (&out)[rows]) const { V::reduce(out, sums_); }
  __m128i w_sums() const {
    __m128i out[1];
    V::reduce(out, w_sums_);
    return out[0];
  }

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
  __builtin_memcpy(y, lanes, used * sizeof *lanes);
}

template <class V, bool signed_w, int rows, bool add_w>
void run_tile(const DotArgs &args, std::size_t i, std::size_t j, Columns &columns) {
  const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(i);
  Tile<V, signed_w, rows, add_w> tile(static_cast<const char *>(args.x) + row * args.ldx, args.ldx, columns);
  tile.add(args.k);
  if constexpr (add_w) {
    alignas(16) std::int32_t w_sums[kColumns], offsets[kColumns] = {};
    _mm_store_si128(reinterpret_cast<__m128i *>(w_sums), tile.w_sums());
    for (std::size_t c = 0; c < columns.used; ++c) offsets[c] = dot_offset(args, j + c, w_sums[c]);
    columns.offset = _mm_load_si128(reinterpret_cast<const __m128i *>(offsets));
  }
  __m128i sums[rows];
  tile.rows_of(sums);
  float *y = args.y + row * args.ldy + static_cast<std::ptrdiff_t>(j);
  for (int r = 0; r < rows; ++r, y += args.ldy) {
    __m128i acc = _mm_add_epi32(sums[r], columns.offset);
    if (args.zw) acc = _mm_sub_epi32(acc, _mm_mullo_epi32(columns.zw, _mm_set1_epi32(args.x_sum[i + r])));
    __m128 v = _mm_mul_ps(_mm_cvtepi32_ps(acc), columns.multiplier);
    if (args.addend) v = _mm_add_ps(v, columns.addend);
    store(y, v, columns.used);
  }
}

template <class V, bool signed_w, bool add_w>
void run_rows(const DotArgs &args, std::size_t i, std::size_t count, std::size_t j, Columns &columns) {
  unroll<V::kRows>([&](auto less) {
    if (count == less + 1) run_tile<V, signed_w, less + 1, add_w>(args, i, j, columns);
  });
}

template <class V, bool signed_w>
void run_columns(const DotArgs &args) {
  constexpr std::size_t kRows = V::kRows;
  for (std::size_t j = 0; j < args.n; j += kColumns) {
    Columns columns{};
    columns.used = args.n - j < kColumns ? args.n - j : kColumns;
    // A missing column repeats the last.
    for (std::size_t c = 0; c < kColumns; ++c)
      columns.w[c] = static_cast<const char *>(args.w) +
                     static_cast<std::ptrdiff_t>(j + (c < columns.used ? c : columns.used - 1)) * args.ldw;
    columns.multiplier = load4(args.multiplier + j, columns.used);
    if (args.addend) columns.addend = load4(args.addend + j, columns.used);
    if (args.zw) columns.zw = load4(args.zw + j, columns.used);
    for (std::size_t i = 0; i < args.m; i += kRows) {
      const std::size_t count = args.m - i < kRows ? args.m - i : kRows;
      i == 0 ? run_rows<V, signed_w, true>(args, i, count, j, columns)
             : run_rows<V, signed_w, false>(args, i, count, j, columns);
    }
  }
}

template <class V>
void run_dot(const DotArgs &args) {
  args.signed_w ? run_columns<V, true>(args) : run_columns<V, false>(args);
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
  __m128i out[1];
  V::reduce(out, sums);
  return _mm_cvtsi128_si32(out[0]) + _mm_extract_epi32(out[0], 1);
}

}  // namespace
}  // namespace qtn::kernels
