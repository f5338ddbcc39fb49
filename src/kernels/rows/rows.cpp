// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/rows.hpp"

#include "kernels/kernel.hpp"

namespace qtn::kernels {

#define QTN_ROWS_KERNEL(id, isa_level)                    \
  namespace rows_##id {                                   \
    void normalize(const NormalizeRowsArgs &args);        \
    void backward(const NormalizeRowsBackwardArgs &args); \
  }
#include "kernels/rows/kernels.inc"
#undef QTN_ROWS_KERNEL

std::span<const RowsKernel> rows_kernels() {
  static constexpr RowsKernel rows[] = {
#define QTN_ROWS_KERNEL(id, isa_level) {#id, Isa::isa_level, rows_##id::normalize, rows_##id::backward},
#include "kernels/rows/kernels.inc"
#undef QTN_ROWS_KERNEL
  };
  return rows;
}

const RowsKernel &rows_kernel() { return choose(rows_kernels(), isa()); }

}  // namespace qtn::kernels
