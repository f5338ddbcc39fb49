// SPDX-License-Identifier: Apache-2.0
// What a Concat joins from several grids, once calibration has chosen them: grids that are nearly alike become one.
#pragma once

#include <vector>

#include "quant/placement.hpp"

namespace qtn::quant {

/// `grids` has one for each group. Among groups that Concats bring together, those whose steps differ by less than a
/// factor of sqrt(2) get the widest one's grid.
///
/// Rounding to steps of s adds noise of power s^2 / 12. Let others read a part in steps of f, and the Concat's result
/// have steps of c: on one grid both readings have c^2, 2 c^2 together; on two the result is rounded twice, f^2 and
/// f^2 + c^2. So one grid is better, and faster, where c < sqrt(2) f. What only Concats read is seen in no finer steps
/// than those of the finest result, and these are its f.
void share_concat_grids(const graph::Graph &g, const Placement &placement, std::vector<QuantizerPtr> &grids);

}  // namespace qtn::quant
