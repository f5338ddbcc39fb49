// SPDX-License-Identifier: Apache-2.0
#include "kernels/real/lanes.hpp"

namespace qtn::kernels::real_avx2 {

void taps(const TapsArgs &args) { Lanes<32>::taps(args); }
void clamp(float *y, std::size_t count, float lo, float hi) { Lanes<32>::clamp(y, count, lo, hi); }
Extent extent(const float *x, std::size_t count) { return Lanes<32>::extent(x, count); }

}  // namespace qtn::kernels::real_avx2
