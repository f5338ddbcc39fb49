// SPDX-License-Identifier: Apache-2.0
// Ends of sums that a matrix unit has left in memory: a few rows at a time, between its instructions, so that both go on.
// They are those of zmm.hpp.
#pragma once

#include "kernels/gemm/zmm.hpp"

namespace qtn::kernels {
namespace {

constexpr std::size_t kTileRows = 16, kTileColumns = 16;

/// The sums of two tiles by two.
using Sums = std::int32_t[2 * kTileRows][2 * kTileColumns];

/// Where the rows of one or two tiles go.
struct Outputs {
  char *y[2];
  std::size_t row[2], row_step;
  std::ptrdiff_t ldy;  ///< bytes
  std::size_t rows, tiles;
};

/// A panel of B.
struct Panel {
  const char *weights, *bias, *multiplier;
  std::size_t column, columns;
  bool is_wide;
};

class Pending {
 public:
  template <class Store>
  explicit Pending(const Store &store) : store_(&store), end_part_(end_part<Store>), element_(Store::kSize) {}

  /// Nothing may be left of those before.
  void begin(const Sums &sums, const Outputs &outputs, const Panel &panel) {
    sums_ = sums;
    outputs_ = &outputs;
    panel_ = panel;
    tile_ = 0;
    left_ = outputs.rows;
    parts_ = outputs.tiles * ((outputs.rows + kTogether - 1) / kTogether);
  }

  /// How often go_on() is about to be called.
  void share_among(std::size_t calls) {
    calls_ = calls;
    due_ = 0;
  }

  /// Ends its share of the rows.
  [[gnu::always_inline]] void go_on() {
    for (due_ += parts_; due_ >= calls_; due_ -= calls_)
      if (left_ != 0) end_part_(*this);
  }

  void end() {
    while (left_ != 0) end_part_(*this);
  }

 private:
  static constexpr std::size_t kTogether = 4;

  template <class Store>
  static void end_part(Pending &p) {
    p.left_ >= kTogether ? p.end_rows<kTogether, Store>() : p.end_rows<1, Store>();
    if (p.left_ == 0 && ++p.tile_ < p.outputs_->tiles) p.left_ = p.outputs_->rows;
  }

  template <int rows, class Store>
  void end_rows() {
    const std::size_t row = outputs_->rows - left_;
    const std::int32_t(*sums)[2 * kTileColumns] = sums_ + tile_ * kTileRows + row;
    Tile tile;
    tile.bias = panel_.bias;
    tile.multiplier = panel_.multiplier;
    tile.columns = panel_.columns;
    tile.column = panel_.column;
    tile.row = outputs_->row[tile_] + row * outputs_->row_step;
    tile.ldy = outputs_->ldy;
    tile.y = outputs_->y[tile_] + panel_.column * element_ + static_cast<std::ptrdiff_t>(row) * tile.ldy;
    const Store &store = *static_cast<const Store *>(store_);
    panel_.is_wide ? store_rows<rows, 2>(sums, tile, store) : store_rows<rows, 1>(sums, tile, store);
    left_ -= rows;
  }

  template <int rows, int nv, class Store>
  static void store_rows(const std::int32_t (*sums)[2 * kTileColumns], const Tile &tile, const Store &store) {
    __m512i acc[rows][nv];
    unroll<nv>([&](auto j) {
      const __m512i bias = load(tile.bias + 64 * j);
      unroll<rows>([&](auto r) { acc[r][j] = settled(_mm512_add_epi32(load(sums[r] + kTileColumns * j), bias)); });
    });
    store(acc, tile);
  }

  const void *store_;
  void (*end_part_)(Pending &);
  std::size_t element_;
  const std::int32_t (*sums_)[2 * kTileColumns] = nullptr;
  const Outputs *outputs_ = nullptr;
  Panel panel_{};
  std::size_t tile_ = 0, left_ = 0;  ///< rows of the tile
  std::size_t calls_ = 1, due_ = 0, parts_ = 0;
};

}  // namespace
}  // namespace qtn::kernels
