// SPDX-License-Identifier: Apache-2.0
// The same integers in another type.
#pragma once

#include "core/tensor.hpp"

namespace qtn {

/// A quantized tensor of at most 8 bits, contiguous, with the same integers on the same scales in a type of the same
/// signedness that holds them. Its grid reaches over all of that type.
Tensor in_integer_type(const Tensor &t, qdtype dtype);

}  // namespace qtn
