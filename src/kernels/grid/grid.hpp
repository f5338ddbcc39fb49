// SPDX-License-Identifier: Apache-2.0
// Between float32 and grids of any integer type, by the formulas of base/rounding.hpp.
//
// Both sides are [rows][columns] without gaps; a row of packed cells begins on a byte of its own. Channels along the
// first axis, or blocks along the last, are a grid for each row; channels along the last axis are a grid for each
// column. A caller with few columns repeats the parameters to make rows longer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.hpp"
#include "base/rounding.hpp"

namespace qtn::kernels {

/// What an integer is stored in. Packed cells fill a byte from its low bits; the last byte of a row is filled up with
/// zero bits.
enum class Cell { u8, i8, u16, i16, i32, u4, i4, u2, i2 };

constexpr std::size_t cell_bits(Cell cell) {
  switch (cell) {
    case Cell::u2:
    case Cell::i2:
      return 2;
    case Cell::u4:
    case Cell::i4:
      return 4;
    case Cell::u8:
    case Cell::i8:
      return 8;
    case Cell::u16:
    case Cell::i16:
      return 16;
    case Cell::i32:
      break;
  }
  return 32;
}

constexpr bool cell_signed(Cell cell) {
  return cell == Cell::i2 || cell == Cell::i4 || cell == Cell::i8 || cell == Cell::i16 || cell == Cell::i32;
}

constexpr std::size_t cell_row_bytes(Cell cell, std::size_t columns) { return (columns * cell_bits(cell) + 7) / 8; }

/// What has a factor and a zero point of its own: everything together (arrays of 1), each row (arrays of `rows`), or
/// each column (arrays of `columns`).
enum class GridPer { array, row, column };

struct GridQuantizeArgs {
  std::size_t rows, columns;
  const float *x;
  void *q;
  Cell cell;
  Rounding rounding;
  GridPer per;
  const float *factor;       ///< inverses of the scales under Rounding::reciprocal, else scales
  const std::int32_t *zero;  ///< in the range of the cell
  std::int32_t lo, hi;       ///< in the range of the cell
  bool stream;               ///< store around the caches: for results larger than these
};

struct GridDequantizeArgs {
  std::size_t rows, columns;
  const void *q;
  float *x;
  Cell cell;
  bool divide;  ///< factors are inverses of the scales
  GridPer per;
  const float *factor;
  const std::int32_t *zero;
  bool stream;
};

/// Results of this many bytes and more are written faster around the caches than through them.
inline constexpr std::size_t kStreamBytes = std::size_t{16} << 20;

struct FloatRange {
  float min, max;  ///< extended to 0; NaN left out
  bool nan;
};

struct GridKernel {
  const char *name;
  Isa isa;
  void (*quantize)(const GridQuantizeArgs &args);
  void (*dequantize)(const GridDequantizeArgs &args);
  FloatRange (*range)(const float *x, std::size_t count);
};

std::span<const GridKernel> grid_kernels();

}  // namespace qtn::kernels
