// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/rows.hpp"

#include "kernels/kernel.hpp"

namespace qtn::kernels {

#define QTN_ROWS_KERNEL(id, isa_level)                     \
  namespace rows_##id {                                    \
    void normalize(const NormalizeRowsArgs &args);         \
    void backward(const NormalizeRowsBackwardArgs &args);  \
    void softmax(const SoftmaxRowsArgs &args);             \
    void log_softmax(const SoftmaxRowsArgs &args);         \
    void score(const ScoreRowsArgs &args);                 \
    void choose_scores(const ChooseScoresArgs &args);      \
    void root_mean_square(const RootMeanSquareArgs &args); \
    void sums(const RowSumsArgs &args);                    \
    void extremes(const RowExtremesArgs &args);            \
    RowMoments moments(const float *x, std::size_t count); \
    void shift(const ShiftArgs &args);                     \
    void products(const RowProductsArgs &args);            \
    void key_products(const FewRowsArgs &args);            \
    void mixtures(const FewRowsArgs &args);                \
    void score_bytes(const ScoreBytesArgs &args);          \
    void row_bytes(const RowBytesArgs &args);              \
    void column_bytes(const ColumnBytesArgs &args);        \
    void row_codes(const RowCodesArgs &args);              \
    void join_codes(const JoinCodesArgs &args);            \
  }
#include "kernels/rows/kernels.inc"
#undef QTN_ROWS_KERNEL

std::span<const RowsKernel> rows_kernels() {
  static constexpr RowsKernel rows[] = {
#define QTN_ROWS_KERNEL(id, isa_level) \
  {#id,                                \
   Isa::isa_level,                     \
   rows_##id::normalize,               \
   rows_##id::backward,                \
   rows_##id::softmax,                 \
   rows_##id::log_softmax,             \
   rows_##id::score,                   \
   rows_##id::choose_scores,           \
   rows_##id::root_mean_square,        \
   rows_##id::sums,                    \
   rows_##id::extremes,                \
   rows_##id::moments,                 \
   rows_##id::shift,                   \
   rows_##id::products,                \
   rows_##id::key_products,            \
   rows_##id::mixtures,                \
   rows_##id::score_bytes,             \
   rows_##id::row_bytes,               \
   rows_##id::column_bytes,            \
   rows_##id::row_codes,               \
   rows_##id::join_codes},
#include "kernels/rows/kernels.inc"
#undef QTN_ROWS_KERNEL
  };
  return rows;
}  // namespace qtn::kernels

const RowsKernel &rows_kernel() { return choose(rows_kernels(), isa()); }

}  // namespace qtn::kernels
