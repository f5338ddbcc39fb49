// SPDX-License-Identifier: Apache-2.0
#include "kernels/grid/grid.hpp"

namespace qtn::kernels::grid_ref {
namespace {

/// The integer at index j of a row.
std::int32_t read(const void *row, Cell cell, std::size_t j) {
  switch (cell) {
    case Cell::u8:
      return static_cast<const std::uint8_t *>(row)[j];
    case Cell::i8:
      return static_cast<const std::int8_t *>(row)[j];
    case Cell::u16:
      return static_cast<const std::uint16_t *>(row)[j];
    case Cell::i16:
      return static_cast<const std::int16_t *>(row)[j];
    case Cell::i32:
      return static_cast<const std::int32_t *>(row)[j];
    default:
      break;
  }
  const std::size_t bits = cell_bits(cell), in_byte = 8 / bits;
  const int mask = (1 << bits) - 1, sign = 1 << (bits - 1);
  const int value = static_cast<const std::uint8_t *>(row)[j / in_byte] >> j % in_byte * bits & mask;
  return cell_signed(cell) ? (value ^ sign) - sign : value;
}

/// Cells of a row are written in order: the first of a byte clears it.
void write(void *row, Cell cell, std::size_t j, std::int32_t q) {
  switch (cell_bits(cell)) {
    case 8:
      static_cast<std::uint8_t *>(row)[j] = static_cast<std::uint8_t>(q);
      return;
    case 16:
      static_cast<std::uint16_t *>(row)[j] = static_cast<std::uint16_t>(q);
      return;
    case 32:
      static_cast<std::int32_t *>(row)[j] = q;
      return;
    default:
      break;
  }
  const std::size_t bits = cell_bits(cell), in_byte = 8 / bits, at = j % in_byte;
  std::uint8_t &byte = static_cast<std::uint8_t *>(row)[j / in_byte];
  const int field = (q & ((1 << bits) - 1)) << at * bits;
  byte = static_cast<std::uint8_t>(at == 0 ? field : byte | field);
}

std::size_t grid_at(GridPer per, std::size_t row, std::size_t column) {
  return per == GridPer::row ? row : per == GridPer::column ? column : 0;
}

}  // namespace

void quantize(const GridQuantizeArgs &args) {
  const float *x = args.x;
  char *q = static_cast<char *>(args.q);
  for (std::size_t i = 0; i < args.rows; ++i, q += cell_row_bytes(args.cell, args.columns))
    for (std::size_t j = 0; j < args.columns; ++j) {
      const std::size_t at = grid_at(args.per, i, j);
      write(q, args.cell, j, to_grid(*x++, args.rounding, args.factor[at], args.zero[at], args.lo, args.hi));
    }
}

void dequantize(const GridDequantizeArgs &args) {
  const char *q = static_cast<const char *>(args.q);
  float *x = args.x;
  for (std::size_t i = 0; i < args.rows; ++i, q += cell_row_bytes(args.cell, args.columns))
    for (std::size_t j = 0; j < args.columns; ++j) {
      const std::size_t at = grid_at(args.per, i, j);
      *x++ = from_grid(read(q, args.cell, j), args.divide, args.factor[at], args.zero[at]);
    }
}

FloatRange range(const float *x, std::size_t count) {
  FloatRange r{0, 0, false};
  for (std::size_t i = 0; i < count; ++i) {
    r.nan |= x[i] != x[i];
    r.min = x[i] < r.min ? x[i] : r.min;
    r.max = x[i] > r.max ? x[i] : r.max;
  }
  return r;
}

}  // namespace qtn::kernels::grid_ref
