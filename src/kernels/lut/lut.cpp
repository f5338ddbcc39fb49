// SPDX-License-Identifier: Apache-2.0
#include "kernels/lut/lut.hpp"

namespace qtn::kernels {

#define QTN_LUT_KERNEL(id, isa_level)                                                               \
  namespace lut_##id {                                                                              \
    void run(std::uint8_t *y, const std::uint8_t *x, std::size_t count, const std::uint8_t *table); \
  }
#include "kernels/lut/kernels.inc"
#undef QTN_LUT_KERNEL

std::span<const LutKernel> lut_kernels() {
  static constexpr LutKernel rows[] = {
#define QTN_LUT_KERNEL(id, isa_level) {#id, Isa::isa_level, lut_##id::run},
#include "kernels/lut/kernels.inc"
#undef QTN_LUT_KERNEL
  };
  return rows;
}

}  // namespace qtn::kernels
