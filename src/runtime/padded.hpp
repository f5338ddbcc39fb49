// SPDX-License-Identifier: Apache-2.0
// A convolution's picture as rows of runs: taps that lie side by side, with zero points to the left and right of the
// picture where windows reach. Rows above and below are never read: their taps are left out, and the bias says so.
// Kernels of 16-bit products get elements of 16 bits.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/gemm/gemm.hpp"
#include "ops/window.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {

class PaddedPicture {
 public:
  PaddedPicture(const ops::Window &window, const Picture &x, std::int64_t groups, std::uint8_t zero_point,
                const kernels::GemmKernel &kernel);

  const ops::Window &window() const { return window_; }
  /// Whether rows are copied, to get their borders, to stand close together or to become wider.
  bool copies() const { return copies_; }
  std::ptrdiff_t group_bytes() const { return channels_ * element_; }
  std::ptrdiff_t lda() const { return window_.stride[1] * pixel_; }
  const std::ptrdiff_t *runs() const { return runs_.data(); }
  std::size_t run_length() const { return static_cast<std::size_t>(run_length_); }

  /// Weights in the order of the runs, each filled up to a multiple of four with zeros.
  LinearWeights weights(const LinearWeights &w) const;
  /// 0: weights() are those of gathered rows.
  std::size_t weights_form() const { return run_used_ == run_length_ ? 0 : run_length(); }
  /// Biases [class][group][panels], one class for each set of rows of taps that lie inside the picture.
  std::vector<std::int32_t> bias(const LinearWeights &spread, std::size_t panels) const;

  std::ptrdiff_t image_bytes() const { return x_.pixels() * x_.pixel; }
  /// Bytes that a pixel of output costs, about.
  std::size_t bytes_of_pixel() const;
  /// Room for copies of `rows` output rows, of one or several images.
  std::size_t bytes(std::size_t rows) const;
  std::ptrdiff_t copied_bytes(std::int64_t rows) const { return copied_rows(rows) * pitch_; }

  /// From the first row's first tap in the copy to that of row i; in the picture from its beginning to that of row oy.
  std::ptrdiff_t row_step(std::int64_t i) const { return i * window_.stride[0] * pitch_; }
  std::ptrdiff_t row_at(std::int64_t oy) const { return (oy * window_.stride[0] - window_.pad_begin[0]) * pitch_; }

  /// Copies what output rows [first, first + rows) of an image read.
  void fill(std::byte *to, const std::uint8_t *image, std::int64_t first, std::int64_t rows) const;
  /// Output row oy, whose first tap is at `at`; biases of the next class are `class_step` further.
  kernels::GemmStrip strip(std::int64_t oy, std::ptrdiff_t at, std::size_t class_step) const;

 private:
  std::int64_t copied_rows(std::int64_t rows) const;
  template <class T>
  void fill_as(T *to, const std::uint8_t *image, std::int64_t first, std::int64_t rows) const;

  ops::Window window_;
  Picture x_;
  std::int64_t groups_, channels_, element_;
  std::uint8_t zero_point_;
  bool copies_, joined_;                ///< joined: a row of taps is one run
  std::int64_t width_;                  ///< pixels of a row that windows reach, borders included
  std::ptrdiff_t pixel_, pitch_;        ///< bytes, where rows are read
  std::int64_t run_used_, run_length_;  ///< elements without and with filling
  std::int64_t runs_of_row_;
  std::vector<std::ptrdiff_t> runs_;
  std::vector<ops::Span> classes_;     ///< rows of taps inside the picture
  std::vector<std::size_t> class_of_;  ///< by output row
};

}  // namespace qtn::runtime
