// SPDX-License-Identifier: Apache-2.0
#include "kernels/columns/columns.hpp"

#include "kernels/kernel.hpp"

namespace qtn::kernels {

#define QTN_COLUMNS_KERNEL(id, isa_level)          \
  namespace columns_##id {                         \
    void sum(const ColumnSumsArgs &args);          \
    void squares(const ColumnSumsArgs &args);      \
    void standardize(const StandardizeArgs &args); \
  }
#include "kernels/columns/kernels.inc"
#undef QTN_COLUMNS_KERNEL

std::span<const ColumnsKernel> columns_kernels() {
  static constexpr ColumnsKernel rows[] = {
#define QTN_COLUMNS_KERNEL(id, isa_level) \
  {#id, Isa::isa_level, columns_##id::sum, columns_##id::squares, columns_##id::standardize},
#include "kernels/columns/kernels.inc"
#undef QTN_COLUMNS_KERNEL
  };
  return rows;
}

const ColumnsKernel &columns_kernel() { return choose(columns_kernels(), isa()); }

}  // namespace qtn::kernels
