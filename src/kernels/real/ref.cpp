// SPDX-License-Identifier: Apache-2.0
#include "kernels/real/planes.hpp"

namespace qtn::kernels::real_ref {

void taps(const TapsArgs &args) { one_by_one(args, 0, args.count); }

void clamp(float *y, std::size_t count, float lo, float hi) {
  for (std::size_t i = 0; i < count; ++i) y[i] = clamped(y[i], lo, hi);
}

void add(float *y, const float *x, std::size_t count, float lo, float hi) {
  for (std::size_t i = 0; i < count; ++i) y[i] = clamped(y[i] + x[i], lo, hi);
}

void gate(const GateArgs &args) { gate_one_by_one(args, 0); }
void copy(const CopyArgs &args) { copy_one_by_one(args); }
void convolve(const ConvolveArgs &args) { convolve_one_by_one(args); }
void correlate(const CorrelateArgs &args) { correlate_one_by_one(args); }
void take(const TakeArgs &args) { take_one_by_one(args, 0); }

Extent extent(const float *x, std::size_t count) {
  Extent e{x[0], x[0], true};
  for (std::size_t i = 0; i < count; ++i) {
    e.min = x[i] < e.min ? x[i] : e.min;
    e.max = x[i] > e.max ? x[i] : e.max;
    e.finite = e.finite && x[i] - x[i] == 0;
  }
  return {e.min + 0.0f, e.max + 0.0f, e.finite};
}

}  // namespace qtn::kernels::real_ref
