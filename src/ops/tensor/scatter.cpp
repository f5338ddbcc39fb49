// SPDX-License-Identifier: Apache-2.0
// Scatter (opsets 9 and 10) is ScatterElements by its older name.
#include "ops/op.hpp"

namespace qtn::ops {

void upgrade_Scatter(OldNode &node) { node.op = "ScatterElements"; }

}  // namespace qtn::ops
