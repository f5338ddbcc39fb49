// SPDX-License-Identifier: Apache-2.0
// Comparing what was added in different orders.
#pragma once

#include "core/tensor.hpp"

namespace qtn::test {

/// Whether two float tensors are equal except for the order in which each engine adds products: they differ by a part of
/// the largest element at most. A sum on the border between two integers of a grid may go either way: `step` is the
/// distance between these.
bool equal_but_for_sums(const Tensor &got, const Tensor &want, double step = 0, double part = 1e-6);

}  // namespace qtn::test
