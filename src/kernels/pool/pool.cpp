// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool/pool.hpp"

namespace qtn::kernels {

#define QTN_POOL_KERNEL(id, isa_level)  \
  namespace pool_##id {                 \
    void max(const PoolArgs &args);     \
    void average(const PoolArgs &args); \
  }
#include "kernels/pool/kernels.inc"
#undef QTN_POOL_KERNEL

std::span<const PoolKernel> pool_kernels() {
  static constexpr PoolKernel rows[] = {
#define QTN_POOL_KERNEL(id, isa_level) {#id, Isa::isa_level, pool_##id::max, pool_##id::average},
#include "kernels/pool/kernels.inc"
#undef QTN_POOL_KERNEL
  };
  return rows;
}

}  // namespace qtn::kernels
