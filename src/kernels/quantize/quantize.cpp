// SPDX-License-Identifier: Apache-2.0
#include "kernels/quantize/quantize.hpp"

namespace qtn::kernels {

#define QTN_QUANTIZE_KERNEL(id, isa_level)       \
  namespace quantize_##id {                      \
    void quantize(const QuantizeArgs &args);     \
    void dequantize(const DequantizeArgs &args); \
  }
#include "kernels/quantize/kernels.inc"
#undef QTN_QUANTIZE_KERNEL

std::span<const QuantizeKernel> quantize_kernels() {
  static constexpr QuantizeKernel rows[] = {
#define QTN_QUANTIZE_KERNEL(id, isa_level) {#id, Isa::isa_level, quantize_##id::quantize, quantize_##id::dequantize},
#include "kernels/quantize/kernels.inc"
#undef QTN_QUANTIZE_KERNEL
  };
  return rows;
}

}  // namespace qtn::kernels
