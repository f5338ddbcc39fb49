// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool_real/lanes.hpp"

namespace qtn::kernels::pool_real_avx2 {

void max(const PoolRealArgs &args) { Pools<32>::max(args); }
void average(const PoolRealArgs &args) { Pools<32>::average(args); }

}  // namespace qtn::kernels::pool_real_avx2
