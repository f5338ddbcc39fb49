// SPDX-License-Identifier: Apache-2.0
// The 256-bit tile: up to 6 rows by 16 columns, 12 accumulators of the 16 registers. What differs between instruction
// sets is one type `Dot`: a dword of A times a dword of every column of B.
//
//   Element, kStep             elements of packed B and how many of k one dword holds
//   add(acc, a, b)             the dot product
//   scratch_bytes(k)
//   block_tiles(args)          tiles of 6 rows that prepare() can take at once
//   prepare(args, row, rows)   A from this row on, as bytes that broadcast as dwords: {pointer, row stride}
#pragma once

#include "kernels/avx2.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/gemm/panel.hpp"
#include "kernels/gemm/rows.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels {
namespace {

struct RowBlock {
  const std::uint8_t *a;
  std::ptrdiff_t lda;
};

constexpr std::size_t kMr = 6, kNr = 16;

struct Tile {
  const std::uint8_t *a;
  std::ptrdiff_t lda;
  const char *panel;
  const char *bias;  ///< int32[16], then float multipliers[16]
  std::size_t steps;
  char *y;
  std::ptrdiff_t ldy;  ///< bytes
  std::size_t columns;
};

template <int mr>
struct Accumulators {
  __m256i v[mr][2];

  void fill(__m256i b0, __m256i b1) {
    unroll<mr>([&](auto r) { v[r][0] = b0, v[r][1] = b1; });
  }

  template <class Dot>
  [[gnu::always_inline]] void add_products(const Rows<mr> &rows, const char *w) {
    const __m256i b0 = load(w), b1 = load(w + 32);
    unroll<mr>([&](auto r) {
      __m256i a;
      rows.template broadcast<r>(a);
      v[r][0] = Dot::add(v[r][0], a, b0);
      v[r][1] = Dot::add(v[r][1], a, b1);
    });
  }
};

class StoreU8 {
 public:
  static constexpr std::size_t kSize = 1;

  explicit StoreU8(const GemmArgs &args) : saturate_(args.range) {}

  template <int mr>
  void operator()(const Accumulators<mr> &acc, const Tile &t) const {
    // AVX2 has no masked store of bytes, and a call for each row would make every accumulator go through memory.
    alignas(32) char narrow[kMr * kNr];
    const bool whole = t.columns == kNr;
    char *y = whole ? t.y : narrow;
    const std::ptrdiff_t ldy = whole ? t.ldy : kNr;
    const __m256 m0 = _mm256_castsi256_ps(load(t.bias + 64)), m1 = _mm256_castsi256_ps(load(t.bias + 96));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);  // undoes the lanes of packing, a row in each half
    const Saturate saturate = saturate_;  // in registers: a store of bytes may change a member
    unroll<(mr + 1) / 2>([&](auto half) {
      constexpr int r = 2 * half, second = r + 1 < mr ? r + 1 : r;
      const auto words = [&](int i) {
        return saturate.words(saturate.round(scaled(acc.v[i][0], m0)), saturate.round(scaled(acc.v[i][1], m1)));
      };
      const __m256i bytes = _mm256_permutevar8x32_epi32(saturate.bytes(words(r), words(second)), order);
      _mm_storeu_si128(reinterpret_cast<__m128i *>(y), _mm256_castsi256_si128(bytes));
      if (second != r) _mm_storeu_si128(reinterpret_cast<__m128i *>(y + ldy), _mm256_extracti128_si256(bytes, 1));
      y += 2 * ldy;
    });
    if (!whole)
      for (int r = 0; r < mr; ++r) __builtin_memcpy(t.y + r * t.ldy, narrow + r * 16, t.columns);
  }

 private:
  Saturate saturate_;
};

class StoreF32 {
 public:
  static constexpr std::size_t kSize = 4;

  explicit StoreF32(const GemmArgs &args) : lo_(_mm256_set1_ps(args.lo)), hi_(_mm256_set1_ps(args.hi)) {}

  template <int mr>
  void operator()(const Accumulators<mr> &acc, const Tile &t) const {
    const __m256i count = _mm256_set1_epi32(static_cast<int>(t.columns));
    unroll<2>([&](auto j) {
      const __m256 m = _mm256_castsi256_ps(load(t.bias + 64 + 32 * j));
      const __m256i column = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(8 * j));
      const __m256i mask = _mm256_cmpgt_epi32(count, column);
      char *y = t.y + 32 * j;
      unroll<mr>([&](auto r) {
        // In this order of operands, min and max keep a NaN, as comparisons do.
        const __m256 v = _mm256_min_ps(hi_, _mm256_max_ps(lo_, scaled(acc.v[r][j], m)));
        _mm256_maskstore_ps(reinterpret_cast<float *>(y), mask, v);
        y += t.ldy;
      });
    });
  }

 private:
  __m256 lo_, hi_;
};

/// Few rows cannot hide the latency of a dot product: then k is split into interleaved chains, added at the end.
template <class Dot, int mr, class Store>
void run_tile(const Tile &t, const Store &store) {
  constexpr int kChains = mr == 1 ? 4 : mr == 2 ? 2 : 1;
  Accumulators<mr> acc[kChains];
  unroll<kChains>([&](auto c) { acc[c].fill(_mm256_setzero_si256(), _mm256_setzero_si256()); });
  acc[0].fill(load(t.bias), load(t.bias + 32));
  Rows<mr> rows(t.a, t.lda);
  const char *w = t.panel;
  const auto step = [&](Accumulators<mr> & chain) __attribute__((always_inline)) {
    chain.template add_products<Dot>(rows, w);
    rows.step();
    w += 64;
  };
  std::size_t s = t.steps;
  for (; s >= kChains; s -= kChains) unroll<kChains>([&](auto c) { step(acc[c]); });
  if constexpr (kChains > 1)
    for (; s != 0; --s) step(acc[0]);
  unroll<kChains - 1>([&](auto c) {
    unroll<mr>([&](auto r) {
      unroll<2>([&](auto j) { acc[0].v[r][j] = _mm256_add_epi32(acc[0].v[r][j], acc[c + 1].v[r][j]); });
    });
  });
  store(acc[0], t);
}

template <class Store>
using Run = void (*)(const Tile &, const Store &);

template <class Dot, class Store>
constexpr Run<Store> kRuns[kMr] = {run_tile<Dot, 1, Store>, run_tile<Dot, 2, Store>, run_tile<Dot, 3, Store>,
                                   run_tile<Dot, 4, Store>, run_tile<Dot, 5, Store>, run_tile<Dot, 6, Store>};

template <class Dot>
using PanelsOf = Panels<typename Dot::Element, Dot::kStep, kNr, false>;

template <class Dot, class Store>
void run_blocks(const GemmArgs &args) {
  if (args.m == 0) return;
  using Weights = PanelsOf<Dot>;
  const Store store(args);
  const Tiles tiles(args.m, kMr);
  const std::size_t in_block = Dot::block_tiles(args);
  const std::ptrdiff_t ldy = args.ldy * static_cast<std::ptrdiff_t>(Store::kSize);
  for (std::size_t first = 0; first < tiles.count(); first += in_block) {
    const std::size_t last = first + in_block < tiles.count() ? first + in_block : tiles.count();
    const std::size_t top = tiles.begin(first);
    const RowBlock block = Dot::prepare(args, top, tiles.begin(last) - top);
    const char *panel = static_cast<const char *>(args.packed);
    for (std::size_t j = 0; j < args.n; j += kNr) {
      for (std::size_t i = first; i < last; ++i) {
        const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(tiles.begin(i));
        const Tile tile{block.a + (row - static_cast<std::ptrdiff_t>(top)) * block.lda,
                        block.lda,
                        panel,
                        panel + Weights::weight_bytes(kNr, args.k),
                        Weights::steps(args.k),
                        static_cast<char *>(args.y) + row * ldy + j * Store::kSize,
                        ldy,
                        args.n - j < kNr ? args.n - j : kNr};
        kRuns<Dot, Store>[tiles.rows(i) - 1](tile, store);
      }
      panel += Weights::panel_bytes(kNr, args.k);
    }
  }
}

}  // namespace
}  // namespace qtn::kernels
