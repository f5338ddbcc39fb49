// SPDX-License-Identifier: Apache-2.0
#include "kernels/grid/grid.hpp"

namespace qtn::kernels {

#define QTN_GRID_KERNEL(id, isa_level)                   \
  namespace grid_##id {                                  \
    void quantize(const GridQuantizeArgs &args);         \
    void dequantize(const GridDequantizeArgs &args);     \
    FloatRange range(const float *x, std::size_t count); \
  }
#include "kernels/grid/kernels.inc"
#undef QTN_GRID_KERNEL

std::span<const GridKernel> grid_kernels() {
  static constexpr GridKernel rows[] = {
#define QTN_GRID_KERNEL(id, isa_level) \
  {#id, Isa::isa_level, grid_##id::quantize, grid_##id::dequantize, grid_##id::range},
#include "kernels/grid/kernels.inc"
#undef QTN_GRID_KERNEL
  };
  return rows;
}

}  // namespace qtn::kernels
