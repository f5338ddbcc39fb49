// SPDX-License-Identifier: Apache-2.0
// Elements of fewer than 8 bits for what moves whole bytes.
#pragma once

#include "ops/op.hpp"

namespace qtn::ops {

/// Packed integers as bytes, on the same grid, and packed floats as float32; others as they are.
Tensor unpacked(const Tensor &x);

using Run = void (*)(const Call &call, std::span<Tensor> outputs);

/// Run of an operator that moves its input 0 to its only output, where that is packed by way of unpacked().
void run_through_unpacked(Run run, const Call &call, std::span<Tensor> outputs);

template <Run run>
void through_unpacked(const Call &call, std::span<Tensor> outputs) {
  run_through_unpacked(run, call, outputs);
}

}  // namespace qtn::ops
