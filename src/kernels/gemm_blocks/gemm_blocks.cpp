// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm_blocks/gemm_blocks.hpp"

namespace qtn::kernels {

#define QTN_GEMM_BLOCKS_KERNEL(id, isa_level, panel_columns)                                    \
  namespace gemm_blocks_##id {                                                                  \
    std::size_t packed_bytes(std::size_t n, const BlocksForm &form);                            \
    void pack(void *packed, const BlocksWeights &w);                                            \
    void quantize(const BlocksRows &to, const float *a, std::size_t m, const BlocksForm &form); \
    void run(const BlocksArgs &args);                                                           \
  }
#include "kernels/gemm_blocks/kernels.inc"
#undef QTN_GEMM_BLOCKS_KERNEL

std::span<const GemmBlocksKernel> gemm_blocks_kernels() {
  static constexpr GemmBlocksKernel rows[] = {
#define QTN_GEMM_BLOCKS_KERNEL(id, isa_level, panel_columns) \
  {"blocks_" #id,          Isa::isa_level,                   \
   panel_columns,          gemm_blocks_##id::packed_bytes,   \
   gemm_blocks_##id::pack, gemm_blocks_##id::quantize,       \
   gemm_blocks_##id::run},
#include "kernels/gemm_blocks/kernels.inc"
#undef QTN_GEMM_BLOCKS_KERNEL
  };
  return rows;
}

}  // namespace qtn::kernels
