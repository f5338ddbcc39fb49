// SPDX-License-Identifier: Apache-2.0
// Y[m][n] = clamp( bias[n] + sum_k A[m][k] * w[n][k] ) in float32, for weights that stay integers of 4 or 8 bits in
// memory: w[n][k] = float(q[n][k] - zero) * scale, with a scale and a zero point for each block of k of a column.
//
// Each element of Y is the chain of fused multiply-adds that gemm_real forms of the same w, to the bit. One row takes
// the time of reading B, which is an eighth or a quarter of its floats; many rows are better multiplied by gemm_real,
// for which unpack() makes floats of a panel at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.hpp"
#include "kernels/gemm_real/gemm_real.hpp"

namespace qtn::kernels {

/// What the size of packed weights follows from.
struct CodesForm {
  std::size_t k;
  std::size_t block;  ///< elements of k that share a scale: a multiple of 32 / bits, or k
  int bits;           ///< 4 or 8
  bool zeros;         ///< there are zero points other than 0

  std::size_t blocks() const { return k / block + (k % block != 0); }
};

struct CodesWeights {
  CodesForm form;
  const std::int8_t *q;     ///< [n][k], within -8 .. 7 for 4 bits
  const float *scale;       ///< [n][blocks], of which none is below kLeastScale in magnitude
  const std::int8_t *zero;  ///< [n][blocks], within -8 .. 7 for 4 bits; read where form.zeros
  const float *bias;        ///< [n]; nullptr: zeros
  std::size_t n;
};

/// Kernels hold scales divided by up to 2^28, which has to be exact.
inline constexpr float kLeastScale = 0x1p-90f;

struct CodesArgs {
  CodesForm form;
  std::size_t m, n;
  const float *a;  ///< row i at a + i * lda; nothing beyond its k elements is read
  std::ptrdiff_t lda;
  const void *packed;  ///< written by pack()
  float *y;            ///< [m][n], rows ldy elements apart; nothing outside [m][n] is written
  std::ptrdiff_t ldy;
  float lo, hi;  ///< the result is clamped to [lo, hi] (infinities: not at all)
};

struct GemmCodesKernel {
  const char *name;
  Isa isa;
  std::size_t nr;  ///< columns of a panel: packed_bytes(j, form) is where column j begins, for multiples of nr
  std::size_t (*packed_bytes)(std::size_t n, const CodesForm &form);
  void (*pack)(void *packed, const CodesWeights &w);
  void (*run)(const CodesArgs &args);
  /// As many columns of a packed panel as `to` has, its bias included.
  void (*unpack)(const GemmRealPanel &to, const void *panel, const CodesForm &form);
};

std::span<const GemmCodesKernel> gemm_codes_kernels();

}  // namespace qtn::kernels
