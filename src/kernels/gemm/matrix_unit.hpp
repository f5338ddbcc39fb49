// SPDX-License-Identifier: Apache-2.0
// Products of tiles: 16 rows of A by 16 columns of B, 64 of k at a time. Two by two of them need four loads for four
// products; the eight tiles that there are hold the sums [row][column], then those of A, then those of B.
#pragma once

#include <immintrin.h>

#include "kernels/gemm/pending.hpp"

namespace qtn::kernels {
namespace {

constexpr std::size_t kTileStep = 64;

/// How the tiles of this thread are configured; in the end it gives them back.
class Configuration {
 public:
  Configuration() = default;
  ~Configuration() { _tile_release(); }
  Configuration(const Configuration &) = delete;
  Configuration &operator=(const Configuration &) = delete;

  /// For `rows` of A, and steps of `depth` in k, a multiple of 4.
  void set(std::size_t rows, std::size_t depth) {
    if (rows == rows_ && depth == depth_) return;
    rows_ = rows;
    depth_ = depth;
    struct alignas(64) {
      std::uint8_t palette, start_row, reserved[14];
      std::uint16_t row_bytes[16];
      std::uint8_t rows[16];
    } layout{};
    layout.palette = 1;
    for (int tile = 0; tile < 8; ++tile) {
      const bool of_a = tile == 4 || tile == 5, of_b = tile > 5;
      layout.rows[tile] = static_cast<std::uint8_t>(of_b ? depth / 4 : rows);
      layout.row_bytes[tile] = static_cast<std::uint16_t>(of_a ? depth : 4 * kTileColumns);
    }
    _tile_loadconfig(&layout);
  }

 private:
  std::size_t rows_ = 0, depth_ = 0;
};

/// Rows of A, in one or two tiles, by some of k.
struct Block {
  const std::uint8_t *a[2];
  std::ptrdiff_t lda;
  const GemmRun *runs, *runs_end;              ///< whole steps
  bool fetches;                                ///< weights come from memory: those ahead are fetched meanwhile
  bool has_last;                               ///< one more, which begins early enough to be whole
  std::size_t steps;                           ///< all of them
  std::size_t last_at;                         ///< where in k
  std::uint8_t last[2][kTileRows][kTileStep];  ///< what it has of A: zeros where steps before have been

  void copy_last(std::size_t t, std::size_t rows, std::size_t k) {
    last_at = k - kTileStep;
    const __mmask64 used = ~std::uint64_t{0} << (kTileStep - k % kTileStep);
    const std::uint8_t *from = a[t] + last_at;
    for (std::size_t r = 0; r < rows; ++r, from += lda)
      _mm512_storeu_si512(last[t][r], _mm512_maskz_loadu_epi8(used, from));
  }

  /// Only a whole product may be shorter than a step.
  static constexpr std::size_t steps_of(std::size_t length) { return (length + kTileStep - 1) / kTileStep; }

  void count_steps() {
    steps = has_last;
    for (const GemmRun *run = runs; run != runs_end; ++run) steps += steps_of(run->length);
  }
};

/// sums[rows][columns] of a block of `mt` tiles and a panel of `nv`; meanwhile, the ends of those before.
template <int mt, int nv>
void multiply(const Block &block, const char *weights, Sums &sums, Pending &before) {
  constexpr std::size_t kRow = nv * kTileColumns * 4, kBytes = kTileStep / 4 * kRow, kPitch = sizeof sums[0];
  constexpr std::size_t kLine = 64, kAhead = 8192;
  // Products and stores of a tile take as long, and a part of the ends finds room beside one.
  before.share_among((block.steps + 1) * mt * nv);
  _tile_zero(0);
  if constexpr (nv == 2) _tile_zero(1);
  if constexpr (mt == 2) _tile_zero(2);
  if constexpr (mt == 2 && nv == 2) _tile_zero(3);
  const auto step = [&](const std::uint8_t *first, const std::uint8_t *second, std::ptrdiff_t lda, const char *w)
      __attribute__((always_inline)) {
    // Weights pass by; rows stay in the first level of cache.
    if (block.fetches) unroll<kBytes / kLine>([&](auto line) { __builtin_prefetch(w + kAhead + line * kLine); });
    _tile_stream_loadd(6, w, kRow);
    _tile_loadd(4, first, lda);
    _tile_dpbusd(0, 4, 6);
    before.go_on();
    if constexpr (nv == 2) {
      _tile_stream_loadd(7, w + 4 * kTileColumns, kRow);
      _tile_dpbusd(1, 4, 7);
      before.go_on();
    }
    if constexpr (mt == 2) {
      _tile_loadd(5, second, lda);
      _tile_dpbusd(2, 5, 6);
      before.go_on();
      if constexpr (nv == 2) {
        _tile_dpbusd(3, 5, 7);
        before.go_on();
      }
    }
  };
  for (const GemmRun *run = block.runs; run != block.runs_end; ++run) {
    const std::uint8_t *first = block.a[0] + run->at, *second = block.a[1] + run->at;
    const char *w = weights + run->k * kRow / 4;
    for (std::size_t s = Block::steps_of(run->length); s != 0; --s) {
      step(first, second, block.lda, w);
      first += kTileStep;
      second += kTileStep;
      w += kBytes;
    }
  }
  if (block.has_last) step(block.last[0][0], block.last[1][0], kTileStep, weights + block.last_at * kRow / 4);
  _tile_stored(0, sums[0], kPitch);
  before.go_on();
  if constexpr (nv == 2) {
    _tile_stored(1, sums[0] + kTileColumns, kPitch);
    before.go_on();
  }
  if constexpr (mt == 2) {
    _tile_stored(2, sums[kTileRows], kPitch);
    before.go_on();
    if constexpr (nv == 2) {
      _tile_stored(3, sums[kTileRows] + kTileColumns, kPitch);
      before.go_on();
    }
  }
}

}  // namespace
}  // namespace qtn::kernels
