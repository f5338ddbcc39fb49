// SPDX-License-Identifier: Apache-2.0
// Tiles of up to V::kMr rows by two vectors of columns, one at the end of a row if that is enough, and the loops over
// them. What differs between instruction sets is one type `V`:
//
//   Vector, kLanes             its dwords
//   load(p), zero(), sum(a, b)
//   Element, kStep             elements of packed B and how many of k one dword holds
//   add_products(acc, a, b)    adds to every lane the dot product of two dwords
//   kRegisters, kInFlight      vectors that fit; accumulators that keep the units busy
//   block_tiles(args)          tiles of kMr rows that prepare() can take at once
//   prepare(args, row, rows)   A from this row on, as bytes that broadcast as dwords: {pointer, row stride}
//
// A plain matrix is a picture of one strip and one run.
#pragma once

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

struct Tile {
  const std::uint8_t *a;
  std::ptrdiff_t lda;
  const std::ptrdiff_t *runs;
  std::size_t run_count, run_steps;
  const char *weights;  ///< of the first run
  const char *bias, *multiplier;
  char *y;
  std::ptrdiff_t ldy;  ///< bytes
  std::size_t columns;
};

template <class V, int mr, int nv>
struct Accumulators {
  typename V::Vector v[mr][nv];

  void fill(const typename V::Vector (&b)[nv]) {
    unroll<mr>([&](auto r) { unroll<nv>([&](auto j) { v[r][j] = b[j]; }); });
  }

  [[gnu::always_inline]] void add_products(const Rows<mr> &rows, const typename V::Vector (&b)[nv]) {
    unroll<mr>([&](auto r) {
      typename V::Vector a;
      rows.template broadcast<r>(a);
      unroll<nv>([&](auto j) { v[r][j] = V::add_products(v[r][j], a, b[j]); });
    });
  }

  void add(const Accumulators &other) {
    unroll<mr>([&](auto r) { unroll<nv>([&](auto j) { v[r][j] = V::sum(v[r][j], other.v[r][j]); }); });
  }
};

/// Few rows cannot hide the latency of a dot product: then k is split into interleaved chains, added at the end.
template <class V, int mr, int nv>
constexpr int chains() {
  const int wanted = mr == 1 ? 4 : mr * nv < V::kInFlight ? 2 : 1;
  return (wanted * mr + 1) * nv + 1 <= V::kRegisters ? wanted : 1;
}

template <class V, int mr, int nv, class Store>
void run_tile(const Tile &t, const Store &store) {
  constexpr int kChains = chains<V, mr, nv>();
  constexpr std::size_t kBytes = sizeof(typename V::Vector), kAhead = 4096;
  typename V::Vector b[nv];
  Accumulators<V, mr, nv> acc[kChains];
  unroll<nv>([&](auto j) { b[j] = V::zero(); });
  unroll<kChains>([&](auto c) { acc[c].fill(b); });
  unroll<nv>([&](auto j) { b[j] = V::load(t.bias + j * kBytes); });
  acc[0].fill(b);
  const char *w = t.weights;
  for (std::size_t run = 0; run < t.run_count; ++run) {
    Rows<mr> rows(t.a + t.runs[run], t.lda);
    const auto step = [&](Accumulators<V, mr, nv> & chain) __attribute__((always_inline)) {
      unroll<nv>([&](auto j) { b[j] = V::load(w + j * kBytes); });
      // The time of few rows is that of reading B, so its lines are asked for early.
      if constexpr (mr <= 4) unroll<nv>([&](auto j) { __builtin_prefetch(w + kAhead + j * kBytes); });
      chain.add_products(rows, b);
      rows.step();
      w += nv * kBytes;
    };
    std::size_t s = t.run_steps;
    for (; s >= kChains; s -= kChains) unroll<kChains>([&](auto c) { step(acc[c]); });
    if constexpr (kChains > 1)
      for (; s != 0; --s) step(acc[0]);
  }
  unroll<kChains - 1>([&](auto c) { acc[0].add(acc[c + 1]); });
  store(acc[0].v, t);
}

template <class Store>
using Run = void (*)(const Tile &, const Store &);

/// The tile functions by rows, for one number of vectors of columns.
template <class V, int nv, class Store>
class Runs {
 public:
  constexpr Runs() {
    unroll<V::kMr>([&](auto less) { by_rows_[less] = run_tile<V, less + 1, nv, Store>; });
  }
  constexpr Run<Store> operator[](std::size_t rows) const { return by_rows_[rows - 1]; }

 private:
  Run<Store> by_rows_[V::kMr] = {};
};

template <class V>
using PanelsOf = Panels<typename V::Element, V::kStep, 2 * V::kLanes, true>;

template <class V, class Store>
void run_blocks(const GemmArgs &args) {
  if (args.m == 0) return;
  using Weights = PanelsOf<V>;
  static constexpr Runs<V, 1, Store> narrow;
  static constexpr Runs<V, 2, Store> wide;
  constexpr std::size_t kNr = 2 * V::kLanes;
  constexpr GemmStrip kMatrix{0, 0, 1, 0};
  constexpr std::ptrdiff_t kStart = 0;
  const GemmPicture matrix{&kMatrix, 1, &kStart, Weights::steps(args.k) * V::kStep, nullptr};
  const GemmPicture &x = args.picture ? *args.picture : matrix;

  const Store store(args);
  const Tiles tiles(args.m, V::kMr);
  const std::size_t in_block = args.picture ? tiles.count() : V::block_tiles(args);
  const std::ptrdiff_t ldy = args.ldy * static_cast<std::ptrdiff_t>(Store::kSize);
  for (std::size_t first = 0; first < tiles.count(); first += in_block) {
    const std::size_t last = first + in_block < tiles.count() ? first + in_block : tiles.count();
    const std::size_t top = tiles.begin(first);
    const RowBlock block = V::prepare(args, top, tiles.begin(last) - top);
    const char *panel = static_cast<const char *>(args.packed);
    for (std::size_t j = 0; j < args.n; j += kNr) {
      const std::size_t left = args.n - j, width = Weights::width(left);
      const char *packed_bias = panel + Weights::weight_bytes(width, args.k);
      Tile tile;
      tile.lda = block.lda;
      tile.run_steps = x.run_bytes / V::kStep;
      tile.multiplier = packed_bias + width * sizeof(std::int32_t);
      tile.ldy = ldy;
      tile.columns = left < width ? left : width;
      for (std::size_t s = 0; s < x.strip_count; ++s) {
        const GemmStrip &strip = x.strips[s];
        char *y = static_cast<char *>(args.y) + static_cast<std::ptrdiff_t>(s * args.m) * ldy + j * Store::kSize;
        tile.runs = x.runs + strip.first_run;
        tile.run_count = strip.run_count;
        tile.weights = panel + Weights::weight_bytes(width, strip.first_run * x.run_bytes);
        tile.bias = x.bias ? reinterpret_cast<const char *>(x.bias + strip.bias_at + j) : packed_bias;
        for (std::size_t i = first; i < last; ++i) {
          const auto row = static_cast<std::ptrdiff_t>(tiles.begin(i));
          tile.a = block.a + strip.at + (row - static_cast<std::ptrdiff_t>(top)) * block.lda;
          tile.y = y + row * ldy;
          (width == kNr ? wide[tiles.rows(i)] : narrow[tiles.rows(i)])(tile, store);
        }
      }
      panel += Weights::panel_bytes(width, args.k);
    }
  }
}

}  // namespace
}  // namespace qtn::kernels
