// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/lanes.hpp"

namespace qtn::kernels::rows_ref {

void normalize(const NormalizeRowsArgs &args) { Rows<16>::normalize(args); }
void backward(const NormalizeRowsBackwardArgs &args) { Rows<16>::backward(args); }

}  // namespace qtn::kernels::rows_ref
