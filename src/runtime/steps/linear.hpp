// SPDX-License-Identifier: Apache-2.0
// What convolutions and matrix products share: packed weights, and a grid of tasks over blocks of rows and of columns.
#pragma once

#include "kernels/gemm_real/gemm_real.hpp"
#include "runtime/steps/run_grid.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {

/// How the output of a product, rows by columns, is cut into tasks. It depends on the sizes only.
struct TaskGrid {
  std::size_t rows, row_block, row_blocks;
  std::size_t column_block, column_blocks;  ///< of one group
  bool columns_first;                       ///< all rows meet a block of columns before the next one
  std::size_t part = 0;  ///< bytes of k for which rows are copied together; 0: they are read where they lie

  /// A task's block of rows, and its block of columns, of which there are so many in all groups.
  struct Place {
    std::size_t rows, columns;
  };
  Place place(std::size_t task, std::size_t all_columns, bool by_columns) const {
    if (by_columns) return {task % row_blocks, task / row_blocks};
    return {task / all_columns, task % all_columns};
  }
};

/// A row reads `row_bytes`; k in bytes.
TaskGrid task_grid(const kernels::GemmForm &form, std::size_t rows, std::size_t row_bytes, std::size_t columns,
                   std::size_t k);
/// Blocks are whole lines of pixels of output, each of which costs `pixel_bytes` of what is read.
TaskGrid image_grid(const kernels::GemmForm &form, std::size_t pixels, std::size_t width, std::size_t pixel_bytes,
                    std::size_t columns, std::size_t k);

/// The best kernel for these weights, also when runs of them are filled up with zeros.
const kernels::GemmKernel &gemm_kernel(const LinearWeights &w, Isa isa);

/// What a step multiplies and by which kernel, whatever lies behind its rows.
struct Product {
  Edge x, y;
  std::size_t ldy;             ///< elements between rows of y
  std::size_t groups, out, k;  ///< per group; k: bytes of a row
  const kernels::GemmForm &form;
  void (*run)(const kernels::GemmArgs &args);
  PackedPtr packed;
  ops::Clamp clamp;
  QuantizedRange range = {};
  bool small = false;             ///< GemmArgs::small
  std::vector<float> addend{};    ///< GemmArgs::addend; empty: none
  std::optional<RunGrid> grid{};  ///< of x, where only a run knows it
};

/// One of integers; `w` is in the order in which rows are read.
Product integer_product(const Edge &x, const Edge &y, std::size_t ldy, const LinearWeights &w,
                        const QuantizedRange &range, const ops::Clamp &clamp, const kernels::GemmKernel &kernel,
                        const PackCache &cache);
/// One of integers on a grid that only a run knows, to floats.
Product dynamic_product(const DynamicOperand &x, const Edge &y, std::size_t ldy, const DynamicWeights &w,
                        const ops::Clamp &clamp, const kernels::GemmKernel &kernel, Isa isa, const PackCache &cache);
/// One of floats.
Product real_product(const Edge &x, const Edge &y, std::size_t ldy, const RealWeights &w, const ops::Clamp &clamp,
                     const kernels::GemmRealKernel &kernel, const PackCache &cache);

/// The grid of a product over rows that are `lda` bytes apart.
TaskGrid matrix_grid(const Product &p, std::size_t rows, std::ptrdiff_t lda);

class LinearStep : public TailedStep {
 public:
  void run(const Context &c) const final;
  bool spread_output(std::ptrdiff_t pixel) final;
  bool has_narrow_blocks() const final { return product_.groups > 1 && product_.out * element_ < kNarrow; }
  bool hold_blocks() final;
  bool add_to_rows(const Tensor &row, const ops::Clamp &clamp) final;
  std::size_t lane_bytes() const final { return grid_at() + grid_bytes() + held_bytes(); }

 protected:
  LinearStep(const Product &product, const TaskGrid &grid);

  /// The rows of A of a task.
  struct Rows {
    const std::uint8_t *a;
    std::ptrdiff_t lda;
    std::size_t m;
    kernels::GemmImage image{};  ///< without strips: `a` is a matrix
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
  static constexpr std::size_t kNarrow = 64;  ///< bytes of a row of a group

  /// Bytes of the longest row of a block, and of a block, in scratch.
  std::size_t held_row() const { return std::min(grid_.column_block, product_.out) * sizeof(float); }
  std::size_t held_bytes() const { return round_up(held_rows_ * held_row(), kAlignment); }
  std::size_t copied_row() const { return grid_.part + kAlignment; }
  std::size_t product_bytes() const {
    if (grid_.part) return grid_.row_block * copied_row();
    return round_up(product_.form.scratch_bytes(grid_.row_block, product_.k), kAlignment);
  }
  std::size_t grid_at() const { return product_bytes() + round_up(rows_bytes(), kAlignment); }
  std::size_t grid_bytes() const {
    return product_.grid ? product_.grid->scratch_bytes(grid_.row_block, grid_.column_block) : 0;
  }
  void multiply_by_parts(kernels::GemmArgs args, std::byte *copy) const;
  /// A task's product, and what its tails make of it; `at` is its first column of all groups.
  void multiply(const Context &c, const kernels::GemmArgs &args, std::byte *scratch, const Task &task,
                std::size_t at) const;

  Product product_;
  std::size_t element_;        ///< bytes, of y
  std::size_t held_rows_ = 0;  ///< of the blocks in scratch; 0: they are parts of y
  TaskGrid grid_;
};

}  // namespace qtn::runtime
