// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/bytes.hpp"
#include "kernels/rows/codes.hpp"
#include "kernels/rows/key_products.hpp"
#include "kernels/rows/lanes.hpp"
#include "kernels/rows/mixtures.hpp"
#include "kernels/rows/products.hpp"
#include "kernels/rows/reduce.hpp"

namespace qtn::kernels::rows_avx2 {

void normalize(const NormalizeRowsArgs &args) { Rows<32>::normalize(args); }
void backward(const NormalizeRowsBackwardArgs &args) { Rows<32>::backward(args); }
void softmax(const SoftmaxRowsArgs &args) { Rows<32>::softmax(args); }
void log_softmax(const SoftmaxRowsArgs &args) { Rows<32>::log_softmax(args); }
void score(const ScoreRowsArgs &args) { Rows<32>::score(args); }
void choose_scores(const ChooseScoresArgs &args) { Rows<32>::choose_scores(args); }
void root_mean_square(const RootMeanSquareArgs &args) { Rows<32>::root_mean_square(args); }
void sums(const RowSumsArgs &args) { RowReductions<32>::sums(args); }
void extremes(const RowExtremesArgs &args) { RowReductions<32>::extremes(args); }
RowMoments moments(const float *x, std::size_t count) { return Rows<32>::moments(x, count); }
void shift(const ShiftArgs &args) { Rows<32>::shift(args); }
void products(const RowProductsArgs &args) { RowProducts<32>::run(args); }
void key_products(const FewRowsArgs &args) { KeyProducts<32>::run(args); }
void mixtures(const FewRowsArgs &args) { RowMixtures<32>::run(args); }
void score_bytes(const ScoreBytesArgs &args) { RowBytes<32>::score(args); }
void row_bytes(const RowBytesArgs &args) { RowBytes<32>::rows(args); }
void column_bytes(const ColumnBytesArgs &args) { RowBytes<32>::columns(args); }
void row_codes(const RowCodesArgs &args) { RowCodes<32>::run(args); }
void join_codes(const JoinCodesArgs &args) { RowCodes<32>::join(args); }

}  // namespace qtn::kernels::rows_avx2
