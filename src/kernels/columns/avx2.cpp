// SPDX-License-Identifier: Apache-2.0
#include "kernels/columns/lanes.hpp"

namespace qtn::kernels::columns_avx2 {

void sum(const ColumnSumsArgs &args) { Columns<32>::add<false>(args); }
void squares(const ColumnSumsArgs &args) { Columns<32>::add<true>(args); }
void standardize(const StandardizeArgs &args) { Columns<32>::standardize(args); }

}  // namespace qtn::kernels::columns_avx2
