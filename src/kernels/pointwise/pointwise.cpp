// SPDX-License-Identifier: Apache-2.0
#include "kernels/pointwise/pointwise.hpp"

#include "kernels/kernel.hpp"

namespace qtn::kernels {

#define QTN_POINTWISE_KERNEL(id, isa_level) \
  namespace pointwise_##id {                \
    void run(const PointwiseArgs &args);    \
    void affine(const AffineArgs &args);    \
  }
#include "kernels/pointwise/kernels.inc"
#undef QTN_POINTWISE_KERNEL

std::span<const PointwiseKernel> pointwise_kernels() {
  static constexpr PointwiseKernel rows[] = {
#define QTN_POINTWISE_KERNEL(id, isa_level) {#id, Isa::isa_level, pointwise_##id::run, pointwise_##id::affine},
#include "kernels/pointwise/kernels.inc"
#undef QTN_POINTWISE_KERNEL
  };
  return rows;
}

const PointwiseKernel &pointwise_kernel() { return choose(pointwise_kernels(), isa()); }

}  // namespace qtn::kernels
