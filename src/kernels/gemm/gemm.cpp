// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/gemm.hpp"

#include <algorithm>

namespace qtn::kernels {

#define QTN_GEMM_KERNEL(id, isa_level, tile_rows, panel_columns, image_bytes, row_unit, run_unit, weights, shift) \
  namespace gemm_##id {                                                                                           \
    std::size_t packed_bytes(std::size_t n, std::size_t k);                                                       \
    std::size_t scratch_bytes(std::size_t m, std::size_t k);                                                      \
    void pack(void *packed, const GemmWeights &w);                                                                \
    void run_u8(const GemmArgs &args);                                                                            \
    void run_f32(const GemmArgs &args);                                                                           \
    void run_rows(const GemmArgs &args);                                                                          \
  }
#include "kernels/gemm/kernels.inc"
#undef QTN_GEMM_KERNEL

namespace {

bool any(const GemmWeights &) { return true; }

/// Whatever two elements of A two neighbours in k meet, their products add up to 16 bits: 255 * 128 < 2^15. Which
/// neighbours are added depends on the runs of an image, so all have to fit.
[[maybe_unused]] bool small_pairs(const GemmWeights &w) {
  for (std::size_t j = 0; j < w.n; ++j) {
    const std::int8_t *b = w.b + static_cast<std::ptrdiff_t>(j) * w.ldb;
    int highest = 0, lowest = 0;
    for (std::size_t k = 0; k + 1 < w.k; ++k, b += w.step) {
      highest = std::max(highest, std::max<int>(b[0], 0) + std::max<int>(b[w.step], 0));
      lowest = std::min(lowest, std::min<int>(b[0], 0) + std::min<int>(b[w.step], 0));
    }
    if (highest > 128 || lowest < -128) return false;
  }
  return true;
}

}  // namespace

std::span<const GemmKernel> gemm_kernels() {
  static constexpr GemmKernel rows[] = {
#define QTN_GEMM_KERNEL(id, isa_level, tile_rows, panel_columns, image_bytes, row_unit, run_unit, weights, shift)  \
  {{#id, Isa::isa_level, tile_rows, panel_columns, image_bytes, gemm_##id::packed_bytes, gemm_##id::scratch_bytes, \
    row_unit, run_unit, shift},                                                                                    \
   weights,                                                                                                        \
   gemm_##id::pack,                                                                                                \
   gemm_##id::run_u8,                                                                                              \
   gemm_##id::run_f32,                                                                                             \
   gemm_##id::run_rows},
#include "kernels/gemm/kernels.inc"
#undef QTN_GEMM_KERNEL
  };
  return rows;
}

}  // namespace qtn::kernels
