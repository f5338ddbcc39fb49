// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm_real/gemm_real.hpp"
#include "kernels/sum_blocks.hpp"

namespace qtn::kernels::gemm_real_ref {

// Column by column: the bias, then the weights.
std::size_t packed_bytes(std::size_t n, std::size_t k) { return n * (sizeof(float) + k); }

void pack(void *packed, const GemmRealWeights &w) {
  auto *to = static_cast<float *>(packed);
  for (std::size_t j = 0; j < w.n; ++j) {
    *to++ = w.bias ? w.bias[j] : 0.0f;
    for (std::size_t k = 0; k < w.k; ++k)
      *to++ = w.b[static_cast<std::ptrdiff_t>(j) * w.column + static_cast<std::ptrdiff_t>(k) * w.row];
  }
}

GemmRealPanel panel(void *packed, std::size_t, std::size_t k, std::size_t j) {
  float *column = static_cast<float *>(packed) + j * (1 + k);
  return {column + 1, 1, column, 1};
}

void run(const GemmArgs &args) {
  const std::size_t depth = args.k / sizeof(float);
  const std::size_t first = args.part ? args.part->at / sizeof(float) : 0;
  const std::size_t count = args.part ? args.part->length / sizeof(float) : depth;
  for (std::size_t i = 0; i < args.m; ++i) {
    const auto row = static_cast<std::ptrdiff_t>(i);
    const auto *a = reinterpret_cast<const float *>(args.a + row * args.lda);
    float *y = static_cast<float *>(args.y) + row * args.ldy;
    const auto *column = static_cast<const float *>(args.packed);
    for (std::size_t j = 0; j < args.n; ++j, column += 1 + depth) {
      BlockedSum sum(first > 0 ? y[j] : column[0]);
      for (std::size_t k = 0; k < count; ++k) sum.add(first + k, a[k], column[1 + first + k]);
      const float above = sum.value() < args.lo ? args.lo : sum.value();
      y[j] = above > args.hi ? args.hi : above;
    }
  }
}

}  // namespace qtn::kernels::gemm_real_ref
