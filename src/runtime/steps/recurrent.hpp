// SPDX-License-Identifier: Apache-2.0
// What steps of recurrent layers are made of: matrices that are packed once, multiplied at every step.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "kernels/gemm_real/gemm_real.hpp"
#include "kernels/rows/rows.hpp"
#include "ops/common/recurrent.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {

/// Rows of floats, and for products of integers what they come to: kernels::RowCodesArgs.
struct RecurrentRows {
  const float *x;
  std::uint8_t *codes;  ///< null for products of floats
  float *scales;

  /// Those from a row on.
  RecurrentRows from(std::size_t row, std::size_t depth) const {
    return {x + row * depth, codes ? codes + 2 * row * depth : nullptr, scales + row};
  }
};

/// A matrix [columns][depth] of one direction, with a bias for each column, packed for products of rows by it: in
/// floats, or of int8 weights, whose products differ from those of floats by about 90 dB.
class RecurrentMatrix {
 public:
  /// Rows [first, first + columns) of direction `d` of `weight` [directions][rows][depth]: float32, or integers in which
  /// graph::recurrent_weight_misfit() finds nothing.
  RecurrentMatrix(const Tensor &weight, std::size_t d, std::size_t first, std::size_t columns, std::vector<float> bias,
                  Isa isa, const PackCache &cache);

  bool in_integers() const { return integers_ != nullptr; }
  const char *kernel() const { return form().name; }
  std::size_t columns() const { return columns_; }
  /// Columns of one task over many rows, whose weights stay in cache.
  std::size_t block() const;
  std::size_t scratch_bytes() const;

  /// The integers of rows; those of floats that are not finite are zeros, and their products NaN.
  void encode(const RecurrentRows &rows, std::size_t count) const {
    rows_.row_codes({rows.x, count, depth_, rows.codes, rows.scales});
  }

  /// y [rows][columns], rows y_row apart = bias + x times the matrix transposed, for columns [first, first + count);
  /// first is a multiple of block().
  void multiply(const RecurrentRows &x, std::size_t rows, std::size_t first, std::size_t count, float *y,
                std::size_t y_row, std::byte *scratch) const;
  void multiply(const RecurrentRows &x, std::size_t rows, float *y, std::byte *scratch) const {
    multiply(x, rows, 0, columns_, y, columns_, scratch);
  }

 private:
  const kernels::GemmForm &form() const;
  void pack_integers(const Tensor &weight, std::size_t d, std::size_t first, Isa isa, const PackCache &cache);
  std::size_t kernel_bytes() const;  ///< of scratch, for a tile of integers
  std::size_t element() const { return in_integers() ? 1 : sizeof(float); }

  const kernels::RowsKernel &rows_;
  const kernels::GemmRealKernel *reals_ = nullptr;
  const kernels::GemmKernel *integers_ = nullptr;
  std::size_t columns_, depth_;
  PackedPtr packed_;
  std::vector<float> bias_;  ///< of products of integers, which have theirs added behind
};

/// An LSTM, GRU or RNN: operands that are absent are kNoSlot, or have no data.
struct RecurrentLayer {
  enum Kind { lstm, gru, rnn } kind;
  const char *op;
  Tensor w, r;          ///< constants that RecurrentMatrix takes
  Tensor b, peepholes;  ///< contiguous float32 constants
  bool coupled, linear_before_reset;
  std::optional<ops::Clamp> clamp;  ///< of y
  SlotId x, lengths, h, c;
  SlotId y, last_h, last_c;
  SlotId work, codes;  ///< float and uint8 of these sizes
};
struct RecurrentSizes {
  std::int64_t floats, codes;
};
RecurrentSizes recurrent_work(const ops::Recurrent &sizes);
StepPtr make_recurrent(const RecurrentLayer &layer, const ops::Recurrent &sizes, Isa isa,
                       const std::function<PackCache(std::size_t part, std::size_t parts)> &cache);

}  // namespace qtn::runtime
