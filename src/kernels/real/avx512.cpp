// SPDX-License-Identifier: Apache-2.0
#include "kernels/real/lanes.hpp"

namespace qtn::kernels::real_avx512 {

void taps(const TapsArgs &args) { Lanes<64>::taps(args); }
void clamp(float *y, std::size_t count, float lo, float hi) { Lanes<64>::clamp(y, count, lo, hi); }
Extent extent(const float *x, std::size_t count) { return Lanes<64>::extent(x, count); }

}  // namespace qtn::kernels::real_avx512
