// SPDX-License-Identifier: Apache-2.0
#include "kernels/columns/lanes.hpp"

namespace qtn::kernels::columns_avx512 {

void sum(const ColumnSumsArgs &args) { Columns<64>::add<false>(args); }
void squares(const ColumnSumsArgs &args) { Columns<64>::add<true>(args); }
void standardize(const StandardizeArgs &args) { Columns<64>::standardize(args); }

}  // namespace qtn::kernels::columns_avx512
