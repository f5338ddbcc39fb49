// SPDX-License-Identifier: Apache-2.0
#include "kernels/depthwise/depthwise.hpp"

namespace qtn::kernels {

#define QTN_DEPTHWISE_KERNEL(id, isa_level)                                            \
  namespace depthwise_##id {                                                           \
    std::size_t packed_bytes(const DepthwiseWindow &window, std::size_t channels);     \
    void pack(void *packed, const DepthwiseWindow &window, const DepthwiseWeights &w); \
    std::size_t scratch_bytes(const DepthwiseWindow &window);                          \
    void run_u8(const DepthwiseArgs &args);                                            \
    void run_f32(const DepthwiseArgs &args);                                           \
  }
#include "kernels/depthwise/kernels.inc"
#undef QTN_DEPTHWISE_KERNEL

std::span<const DepthwiseKernel> depthwise_kernels() {
  static constexpr DepthwiseKernel rows[] = {
#define QTN_DEPTHWISE_KERNEL(id, isa_level) \
  {#id,                                     \
   Isa::isa_level,                          \
   depthwise_##id::packed_bytes,            \
   depthwise_##id::pack,                    \
   depthwise_##id::scratch_bytes,           \
   depthwise_##id::run_u8,                  \
   depthwise_##id::run_f32},
#include "kernels/depthwise/kernels.inc"
#undef QTN_DEPTHWISE_KERNEL
  };
  return rows;
}

}  // namespace qtn::kernels
