// SPDX-License-Identifier: Apache-2.0
// What steps of recurrent layers are made of: matrices that are packed once, multiplied at every step.
#pragma once

#include <functional>
#include <vector>

#include "kernels/gemm_real/gemm_real.hpp"
#include "ops/common/recurrent.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {

/// A matrix [columns][depth] of one direction, with a bias for each column, packed for products of rows by it.
class RecurrentMatrix {
 public:
  RecurrentMatrix(const float *weight, std::vector<float> bias, std::size_t columns, std::size_t depth, Isa isa,
                  const PackCache &cache);

  const char *kernel() const { return kernel_->name; }
  std::size_t columns() const { return columns_; }
  /// Columns of one task over many rows, whose weights stay in cache.
  std::size_t block() const;

  /// y [rows][columns], rows y_row apart = bias + x [rows][depth] times the matrix transposed, for columns [first, first +
  /// count); first is a multiple of block().
  void multiply(const float *x, std::size_t rows, std::size_t first, std::size_t count, float *y,
                std::size_t y_row) const;
  void multiply(const float *x, std::size_t rows, float *y) const { multiply(x, rows, 0, columns_, y, columns_); }

 private:
  const kernels::GemmRealKernel *kernel_;
  std::size_t columns_, depth_;
  PackedPtr packed_;
};

/// An LSTM, GRU or RNN: operands that are absent are kNoSlot, or have no data.
struct RecurrentLayer {
  enum Kind { lstm, gru, rnn } kind;
  const char *op;
  Tensor w, r, b, peepholes;  ///< contiguous float32 constants
  bool coupled, linear_before_reset;
  SlotId x, lengths, h, c;
  SlotId y, last_h, last_c;
  SlotId work;  ///< recurrent_work_floats() floats
};
std::int64_t recurrent_work_floats(const ops::Recurrent &sizes);
StepPtr make_recurrent(const RecurrentLayer &layer, const ops::Recurrent &sizes, Isa isa,
                       const std::function<PackCache(std::size_t part, std::size_t parts)> &cache);

}  // namespace qtn::runtime
