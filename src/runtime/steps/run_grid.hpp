// SPDX-License-Identifier: Apache-2.0
// Products of integers whose grid on the left is known only in a run: what goes with their packed weights, and what a
// task tells a kernel of both sides.
#pragma once

#include <vector>

#include "kernels/dot/dot.hpp"
#include "kernels/gemm/gemm.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {

class RunGrid {
 public:
  /// Packed weights of `form`, and behind them sums, biases and zero points of all columns.
  static PackedWeights with_columns(PackedWeights packed, const kernels::GemmForm &form, const DynamicWeights &w);

  /// `packed`: what with_columns() has made of these weights.
  RunGrid(const DynamicOperand &x, const DynamicWeights &w, const kernels::GemmForm &form, const PackedWeights &packed,
          Isa isa);

  const DynamicOperand &x() const { return x_; }
  /// Bytes of scratch of a task of so many rows and columns.
  std::size_t scratch_bytes(std::size_t rows, std::size_t columns) const;
  /// Completes `args` by what is to say of the rows from `first` on and the columns of a group from `column` on.
  void describe(const Context &c, std::size_t first, std::size_t group, std::size_t column, std::byte *scratch,
                kernels::GemmRows &rows, kernels::GemmArgs &args) const;

 private:
  DynamicOperand x_;
  const kernels::DotKernel &dot_;
  const std::int32_t *sums_, *zeros_;  ///< zeros_: nullptr where all are 0
  const float *bias_;
  std::size_t panels_, panel_;  ///< columns of a group, filled up, and those of a panel
  std::uint32_t k_, shift_;
};

}  // namespace qtn::runtime
