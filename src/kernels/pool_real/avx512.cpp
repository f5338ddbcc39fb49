// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool_real/lanes.hpp"

namespace qtn::kernels::pool_real_avx512 {

void max(const PoolRealArgs &args) { Pools<64>::max(args); }
void average(const PoolRealArgs &args) { Pools<64>::average(args); }

}  // namespace qtn::kernels::pool_real_avx512
