// SPDX-License-Identifier: Apache-2.0
// Blocks of rows of A by panels of B, cut into tiles of up to V::kMr rows by V::kNr columns, half as many at the end of
// a row if they are enough. What differs between instruction sets is one type `V`:
//
//   kMr, kNr
//   Element, kStep             elements of packed B, and how many of k lie side by side for a column
//   kShift                     what is taken off every element of A
//   kRowColumns                columns of a tile of one row, several panels, where it is faster so
//   block_tiles(args)          tiles of kMr rows that prepare() can take at once
//   prepare(args, row, rows)   A from this row on, as the tiles read it: {pointer, row stride}
//   run<rows, columns>(tile, store)
//
// A store is made from the arguments and ends a tile: store(accumulators[rows][vectors], tile). One that can go on with
// what a tile has come to before begins it, too: store.begin(accumulators, tile). A block of a plain matrix is a strip
// of one run.
#pragma once

#include <algorithm>

#include "kernels/gemm/gemm.hpp"
#include "kernels/gemm/panel.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels {
namespace {

/// Leaves every number as it is, a zero of either sign, too.
inline constexpr float kNoAddend = -0.0f;

struct RowBlock {
  const std::uint8_t *a;
  std::ptrdiff_t lda;
};

struct Tile {
  const std::uint8_t *a;
  std::ptrdiff_t lda;
  const GemmRun *runs;
  std::size_t run_count;
  const char *weights;  ///< where k is 0
  const char *bias, *multiplier;
  char *y;
  std::ptrdiff_t ldy;  ///< bytes
  std::size_t columns;
  std::ptrdiff_t panel;      ///< bytes to the next panel
  std::size_t column, row;   ///< of Y; the row only for a Store::kPlaced
  const char *next;          ///< from where on the tile fetches the next panel, while it runs
  std::ptrdiff_t next_step;  ///< bytes for each step of k

  /// Where k ends.
  std::size_t end() const { return run_count == 0 ? 0 : runs[run_count - 1].k + runs[run_count - 1].length; }
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

/// As many columns as a tile of one row has at most.
template <class V>
constexpr int row_columns() {
  if constexpr (requires { V::kRowColumns; })
    return V::kRowColumns;
  else
    return V::kNr;
}

/// The strips of an image or of a block of a matrix, panel by panel.
template <class V, class Store>
void run_strips(const GemmArgs &args, const Store &store, const std::uint8_t *a, const GemmImage &x) {
  using Weights = PanelsOf<V>;
  constexpr std::size_t kNr = V::kNr, kRowColumns = row_columns<V>();
  static constexpr Runs<V, V::kNr, Store> wide;
  static constexpr Runs<V, V::kNr / 2, Store> narrow;
  const std::ptrdiff_t ldy = args.ldy * static_cast<std::ptrdiff_t>(Store::kSize);
  const char *panel = static_cast<const char *>(args.packed);
  std::size_t tile_count = 0;
  for (std::size_t s = 0; s < x.strip_count; ++s) tile_count += Tiles(x.strips[s].rows, V::kMr).count();
  const bool one_row = kRowColumns > kNr && x.strip_count == 1 && x.strips[0].rows == 1 && !x.bias;
  for (std::size_t j = 0, panels; j < args.n; j += panels * kNr) {
    const std::size_t left = args.n - j, width = Weights::width(left),
                      panel_bytes = Weights::panel_bytes(width, args.k);
    const char *packed_bias = panel + Weights::weight_bytes(width, args.k);
    panels = one_row && left >= kRowColumns ? kRowColumns / kNr : 1;
    Tile tile;
    const std::size_t share = panel_bytes / tile_count;
    tile.panel = static_cast<std::ptrdiff_t>(panel_bytes);
    tile.next = panel + panels * panel_bytes;
    tile.next_step = static_cast<std::ptrdiff_t>(Weights::weight_bytes(width, V::kStep) / tile_count + 1);
    tile.weights = panel;
    tile.multiplier = packed_bias + width * sizeof(std::int32_t);
    tile.columns = std::min(left, panels * width);
    tile.column = j;
    for (std::size_t s = 0; s < x.strip_count; ++s) {
      const GemmStrip &strip = x.strips[s];
      char *y = static_cast<char *>(args.y) + static_cast<std::ptrdiff_t>(strip.y_row) * ldy + j * Store::kSize;
      tile.lda = strip.lda;
      tile.runs = strip.runs;
      tile.run_count = strip.run_count;
      tile.bias = x.bias ? reinterpret_cast<const char *>(x.bias + strip.bias_at + j) : packed_bias;
      tile.ldy = static_cast<std::ptrdiff_t>(strip.y_step) * ldy;
      const Tiles tiles(strip.rows, V::kMr);
      for (std::size_t i = 0; i < tiles.count(); ++i) {
        const auto row = static_cast<std::ptrdiff_t>(tiles.begin(i));
        tile.a = a + strip.at + row * strip.lda;
        tile.y = y + row * tile.ldy;
        if constexpr (requires { Store::kPlaced; })
          tile.row = strip.y_row + static_cast<std::size_t>(row) * strip.y_step;
        if (panels > 1)
          V::template run<1, static_cast<int>(kRowColumns), Store>(tile, store);
        else
          (width == kNr ? wide[tiles.rows(i)] : narrow[tiles.rows(i)])(tile, store);
        tile.next += share;
      }
    }
    panel += panels * panel_bytes;
  }
}

template <class V, class Store>
void run_blocks(const GemmArgs &args) {
  if (args.m == 0) return;
  const Store store(args);
  if (args.image) return run_strips<V>(args, store, args.a, *args.image);
  const GemmRun whole =
      args.part ? GemmRun{0, args.part->at, args.part->length} : GemmRun{0, 0, PanelsOf<V>::steps(args.k) * V::kStep};
  const Tiles tiles(args.m, V::kMr);
  const std::size_t in_block = V::block_tiles(args);
  for (std::size_t first = 0; first < tiles.count(); first += in_block) {
    const std::size_t last = first + in_block < tiles.count() ? first + in_block : tiles.count();
    const std::size_t top = tiles.begin(first), rows = tiles.begin(last) - top;
    const RowBlock block = V::prepare(args, top, rows);
    const GemmStrip strip{0, block.lda, rows, &whole, 1, 0, top, 1};
    run_strips<V>(args, store, block.a, {&strip, 1, args.bias});
  }
}

}  // namespace
}  // namespace qtn::kernels
