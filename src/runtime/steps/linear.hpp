// SPDX-License-Identifier: Apache-2.0
// What convolutions and matrix products share: packed weights, and a grid of tasks over blocks of rows and of columns.
#pragma once

#include "kernels/gemm/gemm.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {

/// How the output of a product, rows by columns, is cut into tasks. It depends on the sizes only.
struct TaskGrid {
  std::size_t rows, row_block, row_blocks;
  std::size_t column_block, column_blocks;  ///< of one group
};

/// Rows come in multiples of `row_unit`, a row reads `row_bytes`.
TaskGrid task_grid(const kernels::GemmKernel &kernel, std::size_t rows, std::size_t row_unit, std::size_t row_bytes,
                   std::size_t columns, std::size_t k);

/// The best kernel for these weights, also when runs of them are filled up with zeros.
const kernels::GemmKernel &gemm_kernel(const LinearWeights &w, Isa isa);

class LinearStep : public TailedStep {
 public:
  /// What a step is made of, whatever lies behind its rows. `w` is in the order in which rows are read.
  struct Product {
    Edge x, y;
    std::size_t ldy;  ///< elements between rows of y
    QuantizedRange range;
    ops::Clamp clamp;
    const kernels::GemmKernel &kernel;
  };

  void run(const Context &c) const final;
  bool spread_output(std::ptrdiff_t pixel) final;
  std::size_t lane_bytes() const final { return product_bytes() + round_up(rows_bytes(), kAlignment); }

 protected:
  LinearStep(const Product &product, const LinearWeights &w, const TaskGrid &grid, const PackCache &cache);

  /// The rows of A of a task.
  struct Rows {
    const std::uint8_t *a;
    std::ptrdiff_t lda;
    std::size_t m;
    kernels::GemmPicture picture{};  ///< without strips: `a` is a matrix
  };

  /// Bytes of scratch that rows() writes.
  virtual std::size_t rows_bytes() const { return 0; }

  /// Which rows, for which columns.
  struct Task {
    std::size_t first, count, group, column;
    bool fresh;  ///< otherwise scratch still holds these rows
  };
  virtual Rows rows(const std::uint8_t *x, const Task &task, std::byte *scratch) const = 0;

  /// Whether the rows of one group in scratch serve the next.
  virtual bool groups_share_rows() const { return true; }

 private:
  std::size_t product_bytes() const { return round_up(kernel_.scratch_bytes(k_), kAlignment); }

  const kernels::GemmKernel &kernel_;
  PackedPtr packed_;
  SlotId x_;
  bool float_output_, small_;
  std::size_t groups_, out_, k_, ldy_;
  QuantizedRange range_;
  ops::Clamp clamp_;
  TaskGrid grid_;
};

}  // namespace qtn::runtime
