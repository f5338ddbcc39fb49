// SPDX-License-Identifier: Apache-2.0
#include "kernels/real/planes.hpp"

namespace qtn::kernels::real_avx512 {

void taps(const TapsArgs &args) { Lanes<64>::taps(args); }
void clamp(float *y, std::size_t count, float lo, float hi) { Lanes<64>::clamp(y, count, lo, hi); }
void add(float *y, const float *x, std::size_t count, float lo, float hi) { Lanes<64>::add(y, x, count, lo, hi); }
Extent extent(const float *x, std::size_t count) { return Lanes<64>::extent(x, count); }
void gate(const GateArgs &args) { Lanes<64>::gate(args); }
void copy(const CopyArgs &args) { Planes<64>::copy(args); }
void convolve(const ConvolveArgs &args) { Planes<64>::convolve(args); }
void correlate(const CorrelateArgs &args) { Planes<64>::correlate(args); }
void take(const TakeArgs &args) { Planes<64>::take(args); }

}  // namespace qtn::kernels::real_avx512
