// SPDX-License-Identifier: Apache-2.0
// Y[i][j] = float(sum_k (X[i][k] - zx) * (W[j][k] - zw[j]) + bias[j]) * multiplier[j] + addend[j]
//
// Both matrices lie as they are, rows along k: weights that are used once, or may change between calls, need no
// packing. One of them is uint8, the other int8. Sums are exact: the caller sees to it that what is converted to float
// fits int32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.hpp"

namespace qtn::kernels {

struct DotArgs {
  std::size_t m, n, k;
  const void *x;  ///< [m][k], row stride ldx bytes
  std::ptrdiff_t ldx;
  const void *w;  ///< [n][k], row stride ldw bytes
  std::ptrdiff_t ldw;
  bool signed_w;  ///< W is int8 and X uint8; else W uint8 and X int8
  std::int32_t zx;
  const std::int32_t *zw;     ///< [n]; nullptr: all 0
  const std::int32_t *x_sum;  ///< [m]: the sum of each row of X; for zw only
  const std::int32_t *bias;   ///< [n]; nullptr: all 0
  const float *multiplier;    ///< [n]
  const float *addend;        ///< [n]; nullptr: none
  float *y;                   ///< [m][n], row stride ldy elements
  std::ptrdiff_t ldy;
};

struct DotKernel {
  const char *name;
  Isa isa;
  void (*run)(const DotArgs &args);
  /// The sum of k integers.
  std::int32_t (*sum)(const void *x, std::size_t k, bool is_signed);
};

std::span<const DotKernel> dot_kernels();

}  // namespace qtn::kernels
