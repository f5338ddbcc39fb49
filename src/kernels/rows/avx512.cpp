// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/lanes.hpp"

namespace qtn::kernels::rows_avx512 {

void normalize(const NormalizeRowsArgs &args) { Rows<64>::normalize(args); }
void backward(const NormalizeRowsBackwardArgs &args) { Rows<64>::backward(args); }

}  // namespace qtn::kernels::rows_avx512
