// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/bytes.hpp"
#include "kernels/rows/codes.hpp"
#include "kernels/rows/key_products.hpp"
#include "kernels/rows/lanes.hpp"
#include "kernels/rows/mixtures.hpp"
#include "kernels/rows/products.hpp"
#include "kernels/rows/reduce.hpp"

namespace qtn::kernels::rows_ref {

void normalize(const NormalizeRowsArgs &args) { Rows<16>::normalize(args); }
void backward(const NormalizeRowsBackwardArgs &args) { Rows<16>::backward(args); }
void softmax(const SoftmaxRowsArgs &args) { Rows<16>::softmax(args); }
void log_softmax(const SoftmaxRowsArgs &args) { Rows<16>::log_softmax(args); }
void score(const ScoreRowsArgs &args) { Rows<16>::score(args); }
void choose_scores(const ChooseScoresArgs &args) { Rows<16>::choose_scores(args); }
void root_mean_square(const RootMeanSquareArgs &args) { Rows<16>::root_mean_square(args); }
void sums(const RowSumsArgs &args) { RowReductions<16>::sums(args); }
void extremes(const RowExtremesArgs &args) { RowReductions<16>::extremes(args); }
RowMoments moments(const float *x, std::size_t count) { return Rows<16>::moments(x, count); }
void shift(const ShiftArgs &args) { Rows<16>::shift(args); }
void products(const RowProductsArgs &args) { RowProducts<16>::run(args); }
void key_products(const FewRowsArgs &args) { KeyProducts<16>::run(args); }
void mixtures(const FewRowsArgs &args) { RowMixtures<16>::run(args); }
void score_bytes(const ScoreBytesArgs &args) { RowBytes<16>::score(args); }
void row_bytes(const RowBytesArgs &args) { RowBytes<16>::rows(args); }
void column_bytes(const ColumnBytesArgs &args) { RowBytes<16>::columns(args); }
void row_codes(const RowCodesArgs &args) { RowCodes<16>::run(args); }
void join_codes(const JoinCodesArgs &args) { RowCodes<16>::join(args); }

}  // namespace qtn::kernels::rows_ref
