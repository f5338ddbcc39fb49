// SPDX-License-Identifier: Apache-2.0
// What operators from two numbers to a truth value share.
#pragma once

#include "ops/common/infer.hpp"

namespace qtn::ops {

/// Two of one type of number, shapes broadcast.
Types infer_comparison(const char *op, const Call &call);

enum class Comparison { equal, less, less_or_equal };

/// y = whether a is that to b, under broadcasting, of any type. Tensors of any strides.
void compare(Comparison comparison, const Tensor &a, const Tensor &b, const Tensor &y);

}  // namespace qtn::ops
