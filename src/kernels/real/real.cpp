// SPDX-License-Identifier: Apache-2.0
#include "kernels/real/real.hpp"

#include "kernels/kernel.hpp"

namespace qtn::kernels {

#define QTN_REAL_KERNEL(id, isa_level)                                         \
  namespace real_##id {                                                        \
    void taps(const TapsArgs &args);                                           \
    void clamp(float *y, std::size_t count, float lo, float hi);               \
    void add(float *y, const float *x, std::size_t count, float lo, float hi); \
    Extent extent(const float *x, std::size_t count);                          \
    void gate(const GateArgs &args);                                           \
    void copy(const CopyArgs &args);                                           \
    void convolve(const ConvolveArgs &args);                                   \
    void correlate(const CorrelateArgs &args);                                 \
    void take(const TakeArgs &args);                                           \
  }
#include "kernels/real/kernels.inc"
#undef QTN_REAL_KERNEL

std::span<const RealKernel> real_kernels() {
  static constexpr RealKernel rows[] = {
#define QTN_REAL_KERNEL(id, isa_level) \
  {#id,                                \
   Isa::isa_level,                     \
   real_##id::taps,                    \
   real_##id::clamp,                   \
   real_##id::add,                     \
   real_##id::extent,                  \
   real_##id::gate,                    \
   real_##id::copy,                    \
   real_##id::convolve,                \
   real_##id::correlate,               \
   real_##id::take},
#include "kernels/real/kernels.inc"
#undef QTN_REAL_KERNEL
  };
  return rows;
}

const RealKernel &real_kernel() { return choose(real_kernels(), isa()); }

}  // namespace qtn::kernels
