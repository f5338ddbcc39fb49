// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/gemm.hpp"

namespace qtn::kernels {

#define QTN_GEMM_KERNEL(id, isa_level, tile_rows, panel_columns, reads_pictures) \
  namespace gemm_##id {                                                          \
    std::size_t packed_bytes(std::size_t n, std::size_t k);                      \
    std::size_t scratch_bytes(std::size_t k);                                    \
    void pack(void *packed, const GemmWeights &w);                               \
    void run_u8(const GemmArgs &args);                                           \
    void run_f32(const GemmArgs &args);                                          \
  }
#include "kernels/gemm/kernels.inc"
#undef QTN_GEMM_KERNEL

std::span<const GemmKernel> gemm_kernels() {
  static constexpr GemmKernel rows[] = {
#define QTN_GEMM_KERNEL(id, isa_level, tile_rows, panel_columns, reads_pictures) \
  {#id,                                                                          \
   Isa::isa_level,                                                               \
   tile_rows,                                                                    \
   panel_columns,                                                                \
   reads_pictures,                                                               \
   gemm_##id::packed_bytes,                                                      \
   gemm_##id::scratch_bytes,                                                     \
   gemm_##id::pack,                                                              \
   gemm_##id::run_u8,                                                            \
   gemm_##id::run_f32},
#include "kernels/gemm/kernels.inc"
#undef QTN_GEMM_KERNEL
  };
  return rows;
}

}  // namespace qtn::kernels
