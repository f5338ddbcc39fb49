// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool_real/lanes.hpp"

namespace qtn::kernels::pool_real_neon {

void max(const PoolRealArgs &args) { Pools<16>::max(args); }
void average(const PoolRealArgs &args) { Pools<16>::average(args); }

}  // namespace qtn::kernels::pool_real_neon
