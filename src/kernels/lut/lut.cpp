// SPDX-License-Identifier: Apache-2.0
#include "kernels/lut/lut.hpp"

namespace qtn::kernels {

#define QTN_LUT_KERNEL(id, isa_level) \
  namespace lut_##id {                \
    void run(const LutArgs &args);    \
  }
#include "kernels/lut/kernels.inc"
#undef QTN_LUT_KERNEL

std::span<const LutKernel> lut_kernels() {
  static constexpr LutKernel rows[] = {
#define QTN_LUT_KERNEL(id, isa_level) {#id, Isa::isa_level, lut_##id::run},
#include "kernels/lut/kernels.inc"
#undef QTN_LUT_KERNEL
  };
#if defined(__x86_64__)
  // Cascade Lake and Cooper Lake have the rest of Isa::avx512vnni without it.
  if (!__builtin_cpu_supports("avx512vbmi")) return std::span(rows).subspan(1);
#endif
  return rows;
}

}  // namespace qtn::kernels
