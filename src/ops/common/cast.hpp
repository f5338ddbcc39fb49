// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor.hpp"

namespace qtn::ops {

/// y = x in the type of y, any of both. `saturate` says what float8 does with what it cannot hold.
void cast_elements(const Tensor &x, const Tensor &y, bool saturate);

}  // namespace qtn::ops
