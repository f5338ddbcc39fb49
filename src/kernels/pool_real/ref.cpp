// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool_real/lanes.hpp"

namespace qtn::kernels::pool_real_ref {

void max(const PoolRealArgs &args) {
  for (std::size_t p = 0; p < args.pixels; ++p) max_one_by_one(args, static_cast<std::ptrdiff_t>(p));
}

void average(const PoolRealArgs &args) {
  for (std::size_t p = 0; p < args.pixels; ++p) average_one_by_one(args, static_cast<std::ptrdiff_t>(p));
}

}  // namespace qtn::kernels::pool_real_ref
