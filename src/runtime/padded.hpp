// SPDX-License-Identifier: Apache-2.0
// A convolution's image as strips of rows, and a row as runs: taps that lie side by side. Taps outside the image
// are left out, and the bias says so. To the left and right this takes strips of their own, for columns of outputs;
// where those would be short and little is copied twice, or channels are no whole dwords, at which runs have to begin,
// these taps are zero points of a copy. Kernels of 16-bit products get a copy with 16-bit elements. Planes of a volume lie
// below one another, and the rows of its outputs are counted through all planes.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/gemm/gemm.hpp"
#include "ops/common/window.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {

class PaddedImage {
 public:
  /// `rows` output rows are read together.
  PaddedImage(const ops::Window &window, const Image &x, std::int64_t groups, std::uint8_t zero_point,
              const kernels::GemmForm &form, std::size_t rows);

  /// How many taps lie inside the image, in all sets of them that differ together.
  static std::size_t taps_of_sets(const ops::Window &window);
  /// Bytes that a pixel of output costs, about.
  static std::size_t bytes_of_pixel(const ops::Window &window, const Image &x, const kernels::GemmForm &form);

  const ops::Window &window() const { return window_; }
  /// Whether rows are copied, to get their borders or to become wider. Those of a volume cannot be.
  bool copies() const { return copies_; }
  /// Rows of outputs of an image.
  std::int64_t lines() const { return window_.out[2] * window_.out[0]; }
  std::ptrdiff_t group_bytes() const { return channels_ * element_; }

  /// Whether a kernel that fills up strips and runs is faster by this than by gathered rows.
  bool is_worth_filling(std::size_t outputs) const;
  /// Weights in the order of the runs, each filled up with zeros to what the kernel takes.
  LinearWeights weights(const LinearWeights &w) const;
  /// 0: weights() are those of gathered rows.
  std::size_t weights_form() const { return run_used_ == run_length_ ? 0 : static_cast<std::size_t>(run_used_); }
  /// Biases [class][group][panels], one class for each set of taps that lie inside the image.
  std::vector<std::int32_t> bias(const LinearWeights &w, std::size_t panels) const;

  std::ptrdiff_t image_bytes() const { return x_.pixels() * x_.pixel; }
  /// Room for copies of `rows` output rows, of one or several images.
  std::size_t bytes(std::size_t rows) const;
  std::ptrdiff_t copied_bytes(std::int64_t rows) const;

  /// Copies what output rows [first, first + rows) of an image read.
  void fill(std::byte *to, const std::uint8_t *image, std::int64_t first, std::int64_t rows) const;

  std::size_t most_strips(std::size_t rows) const { return rows * columns_.size(); }
  /// The strips of output rows [first, first + rows) of an image, whose copy, or which itself, is at `at`; the first
  /// one is `y_row` pixels into the outputs, and biases of the next class are `class_step` further. Returns their end.
  kernels::GemmStrip *strips(kernels::GemmStrip *to, std::int64_t first, std::int64_t rows, std::ptrdiff_t at,
                             std::size_t y_row, std::size_t class_step) const;

 private:
  /// Outputs of a row whose windows reach out of the image alike.
  struct Columns {
    std::int64_t first, count;
    ops::Span taps;
  };

  /// Rows of taps inside the image.
  struct Lines {
    ops::Span planes, rows;
    bool operator==(const Lines &other) const;
    bool has(std::int64_t plane, std::int64_t row) const;
  };

  std::int64_t filled_up(std::int64_t run) const { return (run + run_unit_ - 1) / run_unit_ * run_unit_; }
  static std::vector<Columns> columns_of(const ops::Window &window, std::int64_t channels,
                                         const kernels::GemmForm &form, std::size_t rows);
  std::vector<kernels::GemmRun> runs(const Lines &lines, const ops::Span &taps) const;
  /// `line` counts the rows of taps of all planes.
  std::int64_t weights_of_tap(std::int64_t line, std::int64_t kx) const;
  /// The first row of taps of an output row, where it lies, which may be outside.
  std::ptrdiff_t line_at(std::int64_t line) const;
  template <class T>
  void fill_as(T *to, const std::uint8_t *image, std::int64_t first, std::int64_t rows) const;

  ops::Window window_;
  Image x_;
  std::int64_t channels_, element_;
  std::size_t row_unit_;
  std::int64_t run_unit_;
  std::uint8_t zero_point_;
  std::vector<Columns> columns_;
  bool copies_, joined_;                             ///< joined: a row of taps is one run
  std::int64_t width_;                               ///< pixels of a row that windows reach, borders included
  std::ptrdiff_t pixel_, pitch_;                     ///< bytes, where rows are read
  std::int64_t run_used_, run_length_;               ///< elements of a whole run, without and with filling
  std::vector<Lines> lines_;                         ///< distinct ones
  std::vector<std::size_t> lines_of_;                ///< by output row
  std::vector<std::vector<kernels::GemmRun>> runs_;  ///< by class: [lines][columns]
};

}  // namespace qtn::runtime
