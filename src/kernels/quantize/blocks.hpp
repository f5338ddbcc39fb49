// SPDX-License-Identifier: Apache-2.0
// The loops of instruction sets without masks. Two layouts are vectorised: both sides contiguous along the same axis,
// and channels-last bytes against planes of floats. A last block starts early enough to be whole, writing some elements
// twice; what is smaller than a block is left to `ref`. `V` is an instruction set:
//
//   kColumns                             elements of one row that a quantizer takes at once
//   Quantizer(args), Dequantizer(args)
//   row(quantizer, x, q)                 kColumns neighbours
//   planes(quantizer, x, x_column, used, by_row)
//                                        8 neighbours of up to four planes to four bytes for each; any bytes for the
//                                        others
//   row(dequantizer, q, x)               8 neighbours
//   planes(dequantizer, by_row, x, x_column, used)
#pragma once

#include "kernels/quantize/axes.hpp"
#include "kernels/quantize/quantize.hpp"

namespace qtn::kernels {
namespace {

constexpr std::size_t kBlockRows = 8;
using ByRow = std::uint8_t[kBlockRows][4];

/// The block at `at` or, if that is not whole, the last one that is.
inline std::size_t whole_block(std::size_t at, std::size_t block, std::size_t count) {
  return at + block <= count ? at : count - block;
}

template <class V>
void quantize_rows(const QuantizeArgs &args) {
  if (args.columns < V::kColumns) return quantize_ref::quantize(args);
  const typename V::Quantizer quantizer(args);
  const std::size_t columns = args.columns;
  for (std::size_t i = 0; i < args.rows; ++i) {
    const float *x = args.x + static_cast<std::ptrdiff_t>(i) * args.x_row;
    std::uint8_t *q = args.q + static_cast<std::ptrdiff_t>(i) * args.q_row;
    for (std::size_t block = 0; block < columns; block += V::kColumns) {
      const std::size_t j = whole_block(block, V::kColumns, columns);
      V::row(quantizer, x + j, q + j);
    }
  }
}

template <class V>
void quantize_planes(const QuantizeArgs &args) {
  if (args.rows < kBlockRows) return quantize_ref::quantize(args);
  const typename V::Quantizer quantizer(args);
  for (std::size_t block = 0; block < args.rows; block += kBlockRows) {
    const std::ptrdiff_t i = static_cast<std::ptrdiff_t>(whole_block(block, kBlockRows, args.rows));
    for (std::size_t c = 0; c < args.columns; c += 4) {
      const int used = static_cast<int>(args.columns - c < 4 ? args.columns - c : 4);
      alignas(32) ByRow by_row;
      V::planes(quantizer, args.x + i + static_cast<std::ptrdiff_t>(c) * args.x_column, args.x_column, used, by_row);
      std::uint8_t *q = args.q + i * args.q_row + c;
      // Where rows of 2 or 3 bytes lie end to end, what a dword adds belongs to the next row, stored after it.
      const bool dense = args.q_row == used && used > 1;
      for (std::size_t r = 0; r < kBlockRows; ++r, q += args.q_row)
        if (used == 4 || (dense && r + 1 < kBlockRows))
          __builtin_memcpy(q, by_row[r], 4);
        else
          for (int k = 0; k < used; ++k) q[k] = by_row[r][k];
    }
  }
}

template <class V>
void dequantize_rows(const DequantizeArgs &args) {
  constexpr std::size_t kColumns = 8;
  if (args.columns < kColumns) return quantize_ref::dequantize(args);
  const typename V::Dequantizer dequantizer(args);
  const std::size_t columns = args.columns;
  for (std::size_t i = 0; i < args.rows; ++i) {
    const std::uint8_t *q = args.q + static_cast<std::ptrdiff_t>(i) * args.q_row;
    float *x = args.x + static_cast<std::ptrdiff_t>(i) * args.x_row;
    for (std::size_t block = 0; block < columns; block += kColumns) {
      const std::size_t j = whole_block(block, kColumns, columns);
      V::row(dequantizer, q + j, x + j);
    }
  }
}

template <class V>
void dequantize_planes(const DequantizeArgs &args) {
  if (args.rows < kBlockRows) return quantize_ref::dequantize(args);
  const typename V::Dequantizer dequantizer(args);
  for (std::size_t block = 0; block < args.rows; block += kBlockRows) {
    const std::ptrdiff_t i = static_cast<std::ptrdiff_t>(whole_block(block, kBlockRows, args.rows));
    for (std::size_t c = 0; c < args.columns; c += 4) {
      const int used = static_cast<int>(args.columns - c < 4 ? args.columns - c : 4);
      const std::uint8_t *q = args.q + i * args.q_row + c;
      alignas(32) ByRow by_row = {};
      for (std::size_t r = 0; r < kBlockRows; ++r, q += args.q_row)
        if (used == 4)
          __builtin_memcpy(by_row[r], q, 4);
        else
          for (int k = 0; k < used; ++k) by_row[r][k] = q[k];
      V::planes(dequantizer, by_row, args.x + i + static_cast<std::ptrdiff_t>(c) * args.x_column, args.x_column, used);
    }
  }
}

template <class V>
void quantize_blocks(const QuantizeArgs &args) {
  run_axes(args, quantize_rows<V>, quantize_planes<V>, quantize_ref::quantize);
}

template <class V>
void dequantize_blocks(const DequantizeArgs &args) {
  run_axes(args, dequantize_rows<V>, dequantize_planes<V>, quantize_ref::dequantize);
}

}  // namespace
}  // namespace qtn::kernels
