// SPDX-License-Identifier: Apache-2.0
#include "kernels/real/planes.hpp"

namespace qtn::kernels::real_neon {

void taps(const TapsArgs &args) { Lanes<16>::taps(args); }
void clamp(float *y, std::size_t count, float lo, float hi) { Lanes<16>::clamp(y, count, lo, hi); }
void add(float *y, const float *x, std::size_t count, float lo, float hi) { Lanes<16>::add(y, x, count, lo, hi); }
Extent extent(const float *x, std::size_t count) { return Lanes<16>::extent(x, count); }
void gate(const GateArgs &args) { Lanes<16>::gate(args); }
void copy(const CopyArgs &args) { Planes<16>::copy(args); }
void convolve(const ConvolveArgs &args) { Planes<16>::convolve(args); }
void correlate(const CorrelateArgs &args) { Planes<16>::correlate(args); }
void take(const TakeArgs &args) { Planes<16>::take(args); }

}  // namespace qtn::kernels::real_neon
