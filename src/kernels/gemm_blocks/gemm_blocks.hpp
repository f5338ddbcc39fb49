// SPDX-License-Identifier: Apache-2.0
// Products of activations that become int8 at every run by weights of 4 or 8 bits, both with a scale for each block of k:
//
//   Y[m][n] = clamp( bias[n] + sum_b float( sum_k qa[m][k] * (qw[n][k] - zero[n][b]) ) * (sa[m][b] * sw[n][b]) )
//
// where k runs through block b. The sums within a block are exact. Each element of Y is one chain of fused multiply-adds
// in the order of blocks, which begins with the bias; the product of two scales is rounded before. So its bits depend
// neither on the tile, the batch or the threads that computed it, nor on the instruction set.
//
// A block of activations has the scale `sa = max |a| / 127` and the integers `qa = rint(a * (1 / sa))`, to even, in
// float32. Where sa is no normal number, they are 0; where max |a| is not finite, sa is NaN as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.hpp"

namespace qtn::kernels {

/// What the size of packed weights and of activations follows from.
struct BlocksForm {
  std::size_t k;
  std::size_t block;  ///< elements of k that share a scale, at most kMostInBlock
  int bits;           ///< of weights: 4 or 8
  bool zeros;         ///< weights have zero points other than 0

  std::size_t blocks() const { return k / block + (k % block != 0); }
  std::size_t depth(std::size_t b) const { return k - b * block < block ? k - b * block : block; }
  /// From one block of activations to the next.
  std::size_t block_bytes() const { return (depth(0) + 7) / 8 * 8; }
  std::size_t row_bytes() const { return blocks() * block_bytes(); }
};

/// int32 holds the sums of larger ones in no case.
inline constexpr std::size_t kMostInBlock = 65536;

struct BlocksWeights {
  BlocksForm form;
  const std::int8_t *q;     ///< [n][k], within -8 .. 7 for 4 bits
  const float *scale;       ///< [n][blocks]
  const std::int8_t *zero;  ///< [n][blocks], within -8 .. 7 for 4 bits; read where form.zeros
  const float *bias;        ///< [n]; nullptr: zeros
  std::size_t n;
};

/// Rows of activations as integers. Blocks are filled up with zeros to multiples of 8.
struct BlocksRows {
  std::int8_t *q;     ///< [m][row_bytes]
  float *scale;       ///< [m][blocks]
  std::int32_t *sum;  ///< [m][blocks], of q
};

struct BlocksArgs {
  BlocksForm form;
  std::size_t m, n;
  BlocksRows a;        ///< written by quantize()
  const void *packed;  ///< written by pack()
  float *y;            ///< [m][n], rows ldy elements apart; nothing outside [m][n] is written
  std::ptrdiff_t ldy;
  float lo, hi;  ///< the result is clamped to [lo, hi] (infinities: not at all)
};

struct GemmBlocksKernel {
  const char *name;
  Isa isa;
  std::size_t nr;  ///< columns of a panel: packed_bytes(j, form) is where column j begins, for multiples of nr
  std::size_t (*packed_bytes)(std::size_t n, const BlocksForm &form);
  void (*pack)(void *packed, const BlocksWeights &w);
  /// m rows of k floats without gaps.
  void (*quantize)(const BlocksRows &to, const float *a, std::size_t m, const BlocksForm &form);
  void (*run)(const BlocksArgs &args);
};

std::span<const GemmBlocksKernel> gemm_blocks_kernels();

}  // namespace qtn::kernels
