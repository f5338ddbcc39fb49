// SPDX-License-Identifier: Apache-2.0
#include "kernels/depthwise_real/depthwise_real.hpp"

namespace qtn::kernels {

#define QTN_DEPTHWISE_REAL_KERNEL(id, isa_level) \
  namespace depthwise_real_##id {                \
    void run(const DepthwiseRealArgs &args);     \
  }
#include "kernels/depthwise_real/kernels.inc"
#undef QTN_DEPTHWISE_REAL_KERNEL

std::span<const DepthwiseRealKernel> depthwise_real_kernels() {
  static constexpr DepthwiseRealKernel rows[] = {
#define QTN_DEPTHWISE_REAL_KERNEL(id, isa_level) {"real_" #id, Isa::isa_level, depthwise_real_##id::run},
#include "kernels/depthwise_real/kernels.inc"
#undef QTN_DEPTHWISE_REAL_KERNEL
  };
  return rows;
}

}  // namespace qtn::kernels
