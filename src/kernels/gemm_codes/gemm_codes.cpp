// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm_codes/gemm_codes.hpp"

namespace qtn::kernels {

#define QTN_GEMM_CODES_KERNEL(id, isa_level, panel_columns)                         \
  namespace gemm_codes_##id {                                                       \
    std::size_t packed_bytes(std::size_t n, const CodesForm &form);                 \
    void pack(void *packed, const CodesWeights &w);                                 \
    void run(const CodesArgs &args);                                                \
    void unpack(const GemmRealPanel &to, const void *panel, const CodesForm &form); \
  }
#include "kernels/gemm_codes/kernels.inc"
#undef QTN_GEMM_CODES_KERNEL

std::span<const GemmCodesKernel> gemm_codes_kernels() {
  static constexpr GemmCodesKernel rows[] = {
#define QTN_GEMM_CODES_KERNEL(id, isa_level, panel_columns)                                            \
  {"codes_" #id,          Isa::isa_level,       panel_columns,          gemm_codes_##id::packed_bytes, \
   gemm_codes_##id::pack, gemm_codes_##id::run, gemm_codes_##id::unpack},
#include "kernels/gemm_codes/kernels.inc"
#undef QTN_GEMM_CODES_KERNEL
  };
  return rows;
}

}  // namespace qtn::kernels
