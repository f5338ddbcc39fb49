// SPDX-License-Identifier: Apache-2.0
// Products of integers of which neither side is known before a run.
#pragma once

#include "kernels/gemm/gemm.hpp"
#include "kernels/kernel.hpp"

namespace qtn::runtime {

/// The best kernel whose sums are exact, whatever both operands hold.
inline const kernels::GemmKernel &any_weights_kernel(Isa isa) {
  static constexpr std::int8_t kMost[] = {127, 127};
  return kernels::choose(kernels::gemm_kernels(), isa, [](const kernels::GemmKernel &kernel) {
    return kernel.fits({kMost, 2, nullptr, nullptr, 1, 2});
  });
}

}  // namespace qtn::runtime
