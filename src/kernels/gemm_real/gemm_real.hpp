// SPDX-License-Identifier: Apache-2.0
// Y[m][n] = clamp( bias[n] + sum_k A[m][k] * B[n][k] ) in float32.
//
// Each element of Y is summed in the order of sum_blocks.hpp. So its bits depend neither on the tile, the batch or the
// threads that computed it, nor on the instruction set.
#pragma once

#include "kernels/gemm/gemm.hpp"

namespace qtn::kernels {

struct GemmRealWeights {
  const float *b;  ///< element (n, k) at b + n * column + k * row
  std::ptrdiff_t column, row;
  const float *bias;  ///< [n]; nullptr: zeros
  std::size_t n, k;   ///< k in elements; everywhere else in bytes
};

/// Where a panel of packed weights has the elements of some columns side by side: those of k at elements + k * row.
struct GemmRealPanel {
  float *elements;
  std::size_t row;
  float *bias;          ///< of the same columns
  std::size_t columns;  ///< from here to the end of the panel
};

/// Reads images as kernels of bytes do. It ignores range, scratch and small of GemmArgs.
struct GemmRealKernel : GemmForm {
  void (*pack)(void *packed, const GemmRealWeights &w);
  /// Where weights [n][k] have column `j`, for callers that fill in elements and bias themselves instead of pack().
  GemmRealPanel (*panel)(void *packed, std::size_t n, std::size_t k, std::size_t j);
  void (*run)(const GemmArgs &args);
};

std::span<const GemmRealKernel> gemm_real_kernels();

}  // namespace qtn::kernels
