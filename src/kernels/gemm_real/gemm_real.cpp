// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm_real/gemm_real.hpp"

namespace qtn::kernels {

#define QTN_GEMM_REAL_KERNEL(id, isa_level, tile_rows, panel_columns, image_bytes)  \
  namespace gemm_real_##id {                                                        \
    std::size_t packed_bytes(std::size_t n, std::size_t k);                         \
    void pack(void *packed, const GemmRealWeights &w);                              \
    GemmRealPanel panel(void *packed, std::size_t n, std::size_t k, std::size_t j); \
    void run(const GemmArgs &args);                                                 \
  }
#include "kernels/gemm_real/kernels.inc"
#undef QTN_GEMM_REAL_KERNEL

namespace {

std::size_t no_scratch(std::size_t, std::size_t) { return 0; }

}  // namespace

std::span<const GemmRealKernel> gemm_real_kernels() {
  static constexpr GemmRealKernel rows[] = {
#define QTN_GEMM_REAL_KERNEL(id, isa_level, tile_rows, panel_columns, image_bytes)                                 \
  {{"real_" #id, Isa::isa_level, tile_rows, panel_columns, image_bytes, gemm_real_##id::packed_bytes, no_scratch}, \
   gemm_real_##id::pack,                                                                                           \
   gemm_real_##id::panel,                                                                                          \
   gemm_real_##id::run},
#include "kernels/gemm_real/kernels.inc"
#undef QTN_GEMM_REAL_KERNEL
  };
  return rows;
}

}  // namespace qtn::kernels
