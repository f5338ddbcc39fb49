// SPDX-License-Identifier: Apache-2.0
#include "kernels/dot/dot.hpp"

namespace qtn::kernels {

#define QTN_DOT_KERNEL(id, isa_level)                               \
  namespace dot_##id {                                              \
    void run(const DotArgs &args);                                  \
    std::int32_t sum(const void *x, std::size_t k, bool is_signed); \
  }
#include "kernels/dot/kernels.inc"
#undef QTN_DOT_KERNEL

std::span<const DotKernel> dot_kernels() {
  static constexpr DotKernel rows[] = {
#define QTN_DOT_KERNEL(id, isa_level) {#id, Isa::isa_level, dot_##id::run, dot_##id::sum},
#include "kernels/dot/kernels.inc"
#undef QTN_DOT_KERNEL
  };
  return rows;
}

}  // namespace qtn::kernels
