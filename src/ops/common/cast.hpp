// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/attrs.hpp"
#include "core/tensor.hpp"

namespace qtn::ops {

/// y = x in the type of y, any of both. `saturate` says what float8 does with what it cannot hold, `rounding` how
/// float8_e8m0 is rounded.
void cast_elements(const Tensor &x, const Tensor &y, bool saturate, PowerRounding rounding = PowerRounding::up);

/// The same for contiguous tensors of types that have loops of vectors; false, and nothing done, for all others.
bool cast_quickly(const Tensor &x, const Tensor &y);

/// What the attribute round_mode of Cast and CastLike says.
PowerRounding power_rounding(const char *op, const Attrs &attrs);

}  // namespace qtn::ops
