// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool_real/pool_real.hpp"

namespace qtn::kernels {

#define QTN_POOL_REAL_KERNEL(id, isa_level) \
  namespace pool_real_##id {                \
    void max(const PoolRealArgs &args);     \
    void average(const PoolRealArgs &args); \
  }
#include "kernels/pool_real/kernels.inc"
#undef QTN_POOL_REAL_KERNEL

std::span<const PoolRealKernel> pool_real_kernels() {
  static constexpr PoolRealKernel rows[] = {
#define QTN_POOL_REAL_KERNEL(id, isa_level) {"real_" #id, Isa::isa_level, pool_real_##id::max, pool_real_##id::average},
#include "kernels/pool_real/kernels.inc"
#undef QTN_POOL_REAL_KERNEL
  };
  return rows;
}

}  // namespace qtn::kernels
