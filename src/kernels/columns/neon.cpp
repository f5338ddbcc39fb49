// SPDX-License-Identifier: Apache-2.0
#include "kernels/columns/lanes.hpp"

namespace qtn::kernels::columns_neon {

void sum(const ColumnSumsArgs &args) { Columns<16>::add<false>(args); }
void squares(const ColumnSumsArgs &args) { Columns<16>::add<true>(args); }
void standardize(const StandardizeArgs &args) { Columns<16>::standardize(args); }

}  // namespace qtn::kernels::columns_neon
