// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise/elementwise.hpp"

namespace qtn::kernels {

#define QTN_BINARY_KERNEL(id, isa_level) \
  namespace binary_##id {                \
    void add(const BinaryArgs &args);    \
    void mul(const BinaryArgs &args);    \
  }
#include "kernels/elementwise/kernels.inc"
#undef QTN_BINARY_KERNEL

std::span<const BinaryKernel> binary_kernels() {
  static constexpr BinaryKernel rows[] = {
#define QTN_BINARY_KERNEL(id, isa_level) {#id, Isa::isa_level, binary_##id::add, binary_##id::mul},
#include "kernels/elementwise/kernels.inc"
#undef QTN_BINARY_KERNEL
  };
  return rows;
}

}  // namespace qtn::kernels
