// SPDX-License-Identifier: Apache-2.0
// Y[m][n] = epilogue( sum_k A[m][k] * B[n][k] + bias[n] ),  A uint8, B int8, exact int32 accumulation.
//
// B is packed once, in the chosen kernel's own format, together with bias and multipliers. The caller folds the zero
// point of A into the bias: bias[n] = rint(b / (scale_a * scale_b[n])) - zero_a * sum_k B[n][k].
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.hpp"
#include "base/requantize.hpp"

namespace qtn::kernels {

struct GemmWeights {
  const std::int8_t *b;  ///< [n][k], row stride ldb, neighbours `step` apart
  std::ptrdiff_t ldb;
  const std::int32_t *bias;  ///< [n]
  const float *multiplier;   ///< [n], finite: to uint8: scale_a*scale_b[n]/scale_y; to float: scale_a*scale_b[n]
  std::size_t n, k;
  std::ptrdiff_t step = 1;
};

/// A part of a row of A that lies in one piece in an image. Those of a row are in the order of k.
struct GemmRun {
  std::ptrdiff_t at;      ///< bytes from the beginning of the row
  std::size_t k, length;  ///< which weights it meets: multiples of run_unit
};

/// Rows of A that lie evenly in a convolution's image and consist of the same runs, the others being left out: those
/// of a row of outputs, or of a column at the border, where some taps are outside the image.
struct GemmStrip {
  std::ptrdiff_t at, lda;  ///< bytes from `a` to the first row and from row to row
  std::size_t rows;
  const GemmRun *runs;
  std::size_t run_count;
  std::size_t bias_at;        ///< elements from `bias`, in place of the packed ones
  std::size_t y_row, y_step;  ///< the row of Y that the first one gives, and how many further the next
};

/// An image read where it lies.
struct GemmImage {
  const GemmStrip *strips;
  std::size_t strip_count;
  const std::int32_t *bias;  ///< at each bias_at: n rounded up to nr
};

/// What run_rows knows of A, whose rows have grids of their own, and of the columns of B.
struct GemmRows {
  const float *scale;        ///< [m]
  const std::int32_t *zero;  ///< [m]
  const std::int32_t *sums;  ///< sum_k B[n][k], [n rounded up to nr]
  const float *bias;         ///< [n rounded up to nr]
  /// The bias is zeros, nothing is clamped, and the sign of a zero makes no difference: a kernel may leave all that out.
  bool bare = false;
};

/// A part of k, in the unit of k. For floats all but the last end where a block of sum_blocks.hpp does.
struct GemmPart {
  std::size_t at, length;
};

/// Kernels of floats (gemm_real) take the same arguments: an element of theirs is four bytes of k, of rows and of runs.
struct GemmArgs {
  std::size_t m, n, k;    ///< m: rows of all strips of an image
  const std::uint8_t *a;  ///< row i at a + i*lda; up to kReadSlack bytes after the last row may be read
  std::ptrdiff_t lda;     ///< bytes
  const void *packed;     ///< written by pack()
  void *y;                ///< uint8 or float [m][n], row stride ldy elements; nothing outside [m][n] is written
  std::ptrdiff_t ldy;
  QuantizedRange range;  ///< for run_u8
  float lo, hi;          ///< for run_f32 and run_rows: the result is clamped to [lo, hi] (infinities: not at all)
  void *scratch;         ///< scratch_bytes(m, k) bytes, 64-byte aligned, one for each thread
  bool small = false;    ///< every |float(acc) * multiplier| is below 2^31: run_u8 may convert without clamping
  const GemmImage *image = nullptr;  ///< for kernels that read images: what `a` is, without lda
  const GemmRows *rows = nullptr;    ///< for run_rows, whose A is a matrix
  /// For kernels of floats: what a matrix A has of k. Parts follow one another; y holds what those before have come to.
  const GemmPart *part = nullptr;
  /// For run_f32: what is added to each column, [n rounded up to nr]; null: nothing.
  const float *addend = nullptr;
  /// For run_rows: in place of the packed biases, [n rounded up to nr], and GemmForm::shift times the sums of B with them;
  /// null: the packed ones.
  const std::int32_t *bias = nullptr;
};

/// How a kernel cuts a product and packs its weights.
struct GemmForm {
  const char *name;  ///< "avx512vnni_14x32"
  Isa isa;
  std::size_t mr;   ///< rows of a full tile: callers split m at multiples of it
  std::size_t nr;   ///< columns of a panel: packed_bytes(j, k) is where column j begins, for multiples of nr
  int image_bytes;  ///< of a byte of the images that it reads: uint8 or uint16; 0: it reads none
  std::size_t (*packed_bytes)(std::size_t n, std::size_t k);
  std::size_t (*scratch_bytes)(std::size_t m, std::size_t k);  ///< for up to m rows
  std::size_t row_unit = 1, run_unit = 4;  ///< fewer rows of a strip, and bytes of a run, take as long as so many
  int shift = 0;                           ///< what a kernel of integers takes off every element of A
};

/// Whether k fills enough of a step: products of less are faster by the next kernel.
constexpr bool fills_step(std::size_t k, std::size_t run_unit) { return run_unit == 4 || 4 * k >= 3 * run_unit; }

struct GemmKernel : GemmForm {
  bool (*fits)(const GemmWeights &w);  ///< with these weights sums are exact, whatever A holds
  void (*pack)(void *packed, const GemmWeights &w);
  void (*run_u8)(const GemmArgs &args);   ///< y = requantize(acc, multiplier, range)
  void (*run_f32)(const GemmArgs &args);  ///< y = clamp(float(acc) * multiplier (+ addend[n]))
  /// y = clamp(float(acc - zero[m] * sums[n]) * (scale[m] * multiplier[n]) + bias[n])
  void (*run_rows)(const GemmArgs &args);
};

std::span<const GemmKernel> gemm_kernels();

}  // namespace qtn::kernels
