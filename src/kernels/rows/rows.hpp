// SPDX-License-Identifier: Apache-2.0
// Rows of floats that are normalized one by one, added up, or multiplied. Sums are formed in double: element j is added to sum j % 8, what is
// beyond the last eight to a ninth, and these are added to that in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.hpp"

namespace qtn::kernels {

/// Rows of `columns` elements without gaps. v is (x - mean) / sqrt(variance + epsilon), formed in double and rounded.
struct RowsArgs {
  const float *x;
  std::size_t rows, columns;
  double epsilon;
  const float *scale;  ///< of each column
};

/// y = v * scale + shift
struct NormalizeRowsArgs {
  RowsArgs rows;
  const float *shift;  ///< of each column; null: none
  float *y;
};

/// With g = dy * scale, dx = (g - mean of g - v * mean of g v) / sqrt(variance + epsilon).
struct NormalizeRowsBackwardArgs {
  RowsArgs rows;
  const float *dy;
  float *dx;                  ///< null: not wanted
  double *d_scale, *d_shift;  ///< sums of dy * v and of dy in each column are added to these
};

/// y = exp(x - top) / sum, top being the largest element and sum that of the exponentials, in double; where inner is 1,
/// exp(x - top) times the float32 next to 1 / sum, which is formed in floats by blocks of 512. Row r begins at
/// (r / inner) * columns * inner + r % inner, and its elements are `inner` apart. Exponentials below 2^-125 are 0.
struct SoftmaxRowsArgs {
  const float *x;
  std::size_t outer, columns, inner;  ///< columns is at least 1, and inner 1 or at least 8
  float *y;                           ///< not x
};

/// Softmax of x * factor + addend where x lies, rounded after each operation; row r begins at x + r * row.
struct ScoreRowsArgs {
  float *x;
  std::size_t rows, columns;  ///< columns is at least 1
  std::ptrdiff_t row;
  float factor;
  const float *addend;        ///< null: none
  std::ptrdiff_t addend_row;  ///< elements from row to row
};

/// x * factor where `chosen` is what `keeps` is, zero or not, else filler; in place.
struct ChooseScoresArgs {
  float *x;
  std::size_t rows, columns;
  std::ptrdiff_t row;  ///< elements from row to row, here and below
  float factor;
  const std::uint8_t *chosen;
  std::ptrdiff_t chosen_row;
  bool keeps;
  float filler;
};

/// The same as ScoreRowsArgs, each row brought to the uint8 grid of own_grid() with zero point 0; x is left with other numbers.
struct ScoreBytesArgs {
  ScoreRowsArgs scores;
  std::uint8_t *q;
  std::ptrdiff_t q_row;  ///< elements from row to row
  float *scale;          ///< [rows]
};

/// Rows of x, less `less` where that is given, on a grid of their own each: uint8 as own_grid() says, or int8 around 0.
struct RowBytesArgs {
  const float *x;
  std::ptrdiff_t x_row;  ///< elements from row to row
  std::size_t rows, columns;
  const float *less;   ///< [columns]; null: nothing
  std::uint8_t *q;     ///< [rows][columns] without gaps; int8 where there are no zero points
  float *scale;        ///< [rows]
  std::int32_t *zero;  ///< [rows]; null: int8 around 0
  std::int32_t *sums;  ///< [rows], of int8; null: not wanted
};

/// Columns of x on an int8 grid of their own each, around 0.
struct ColumnBytesArgs {
  const float *x;
  std::ptrdiff_t x_row;  ///< elements from row to row
  std::size_t rows, columns;
  std::int8_t *q;  ///< [rows][columns] without gaps
  float *scale;    ///< [columns]
};

/// Rows of x on a grid of 15 bits around 0 of their own each: codes q = 128 * high + low, both halves within 64 of 0, are
/// a row of high and one of low halves, uint8 around 128. Rows of less than 2^-100 are zeros.
struct RowCodesArgs {
  const float *x;  ///< [rows][columns] without gaps
  std::size_t rows, columns;
  std::uint8_t *q;  ///< [rows][2][columns]
  float *scale;     ///< [rows]; NaN where an element is not finite
};

/// y = (128 * high + low) * scale + bias
struct JoinCodesArgs {
  const float *high, *low;
  std::size_t count;
  float scale;
  const float *bias;
  float *y;
};

/// y = x / sqrt(mean of squares + epsilon) * scale; the quotient is formed in double and rounded.
struct RootMeanSquareArgs {
  RowsArgs rows;
  float *y;
  float *rstd;  ///< of each row; null: not wanted
};

enum class Addends { numbers, magnitudes, squares };

/// sums[r] += that of these of row r
struct RowSumsArgs {
  Addends of;
  const float *x;
  std::size_t rows;
  std::ptrdiff_t row;  ///< elements from row to row
  std::size_t columns;
  double *sums;
};

/// y[r] = the largest or smallest of y[r] and of row r; NaN is either.
struct RowExtremesArgs {
  bool largest;
  const float *x;
  std::size_t rows;
  std::ptrdiff_t row;   ///< elements from row to row
  std::size_t columns;  ///< at least 1
  float *y;
};

struct RowMoments {
  double mean, variance;
};

/// y = (x - mean) * gain + shift, in double
struct ShiftArgs {
  const float *x;
  std::size_t count;
  double mean, gain, shift;
  float *y;
};

/// y[i][j] = (y[i][j] +) the sum over k of x[i][k] * w[j][k]: rows by rows, as recurrent layers have their weights.
/// Product k is added to sum k % 16; then halves of these are added to halves, and to that, in order, what is beyond the
/// last sixteen.
struct RowProductsArgs {
  const float *x;
  std::size_t m;
  const float *w;
  std::size_t n, k;  ///< rows of x and w are without gaps
  float *y;
  std::size_t y_row;  ///< elements from row to row
  bool adds;
};

/// y[i][j] = the sum over k, in the order of sum_blocks.hpp, of x[i][k] * w[j][k] for key_products(), which those of
/// queries and keys are, and of x[i][k] * w[k][j] for mixtures().
struct FewRowsArgs {
  const float *x;
  std::ptrdiff_t x_row;  ///< elements from row to row, here and below
  std::size_t m;
  const float *w;
  std::ptrdiff_t w_row;
  std::size_t n, k;
  float *y;
  std::ptrdiff_t y_row;
};

struct RowsKernel {
  const char *name;
  Isa isa;
  void (*normalize)(const NormalizeRowsArgs &args);
  void (*backward)(const NormalizeRowsBackwardArgs &args);
  void (*softmax)(const SoftmaxRowsArgs &args);
  void (*log_softmax)(const SoftmaxRowsArgs &args);  ///< x - top - log(sum); inner is 1
  void (*score)(const ScoreRowsArgs &args);
  void (*choose_scores)(const ChooseScoresArgs &args);
  void (*root_mean_square)(const RootMeanSquareArgs &args);
  void (*sums)(const RowSumsArgs &args);
  void (*extremes)(const RowExtremesArgs &args);
  RowMoments (*moments)(const float *x, std::size_t count);
  void (*shift)(const ShiftArgs &args);
  void (*products)(const RowProductsArgs &args);
  void (*key_products)(const FewRowsArgs &args);
  void (*mixtures)(const FewRowsArgs &args);
  void (*score_bytes)(const ScoreBytesArgs &args);
  void (*row_bytes)(const RowBytesArgs &args);
  void (*column_bytes)(const ColumnBytesArgs &args);
  void (*row_codes)(const RowCodesArgs &args);
  void (*join_codes)(const JoinCodesArgs &args);
};

std::span<const RowsKernel> rows_kernels();

/// The one for the instruction set in force.
const RowsKernel &rows_kernel();

}  // namespace qtn::kernels
