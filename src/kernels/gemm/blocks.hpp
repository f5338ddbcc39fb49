// SPDX-License-Identifier: Apache-2.0
// Blocks of rows of A by panels of B, cut into tiles of up to V::kMr rows by V::kNr columns, half as many at the end of
// a row if they are enough. What differs between instruction sets is one type `V`:
//
//   kMr, kNr
//   Element, kStep             elements of packed B, and how many of k lie side by side for a column
//   kShift                     what is taken off every element of A
//   block_tiles(args)          tiles of kMr rows that prepare() can take at once
//   prepare(args, row, rows)   A from this row on, as the tiles read it: {pointer, row stride}
//   run<rows, columns>(tile, store)
//
// A store is made from the arguments and ends a tile: store(accumulators[rows][vectors], tile). A plain matrix is a
// picture of one strip and one run.
#pragma once

#include "kernels/gemm/gemm.hpp"
#include "kernels/gemm/panel.hpp"
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

template <class Store>
using Run = void (*)(const Tile &, const Store &);

/// The tile functions by rows, for one number of columns.
template <class V, int columns, class Store>
class Runs {
 public:
  constexpr Runs() {
    unroll<V::kMr>([&](auto less) { by_rows_[less] = V::template run<less + 1, columns, Store>; });
  }
  constexpr Run<Store> operator[](std::size_t rows) const { return by_rows_[rows - 1]; }

 private:
  Run<Store> by_rows_[V::kMr] = {};
};

template <class V>
using PanelsOf = Panels<typename V::Element, V::kStep, V::kNr, true, V::kShift>;

template <class V, class Store>
void run_blocks(const GemmArgs &args) {
  if (args.m == 0) return;
  using Weights = PanelsOf<V>;
  constexpr std::size_t kNr = V::kNr;
  static constexpr Runs<V, V::kNr, Store> wide;
  static constexpr Runs<V, V::kNr / 2, Store> narrow;
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
      tile.run_steps = x.run_length / V::kStep;
      tile.multiplier = packed_bias + width * sizeof(std::int32_t);
      tile.ldy = ldy;
      tile.columns = left < width ? left : width;
      for (std::size_t s = 0; s < x.strip_count; ++s) {
        const GemmStrip &strip = x.strips[s];
        char *y = static_cast<char *>(args.y) + static_cast<std::ptrdiff_t>(s * args.m) * ldy + j * Store::kSize;
        tile.runs = x.runs + strip.first_run;
        tile.run_count = strip.run_count;
        tile.weights = panel + Weights::weight_bytes(width, strip.first_run * x.run_length);
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
