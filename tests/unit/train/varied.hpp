// SPDX-License-Identifier: Apache-2.0
// Tensors to train with.
#pragma once

#include "core/tensor.hpp"

namespace qtn::test {

bool same_bits(const Tensor &a, const Tensor &b);

/// Numbers from -1 to 1 without a pattern that a block or a vector could hide.
Tensor varied(const Shape &shape, std::int64_t seed);

}  // namespace qtn::test
