// SPDX-License-Identifier: Apache-2.0
// Results without elements, whose other dimensions may have any size: operators need not know them.
#pragma once

#include <algorithm>
#include <span>

#include "core/tensor.hpp"

namespace qtn::ops {

/// Whether every output is absent or has no elements.
inline bool hold_nothing(std::span<const Tensor> outputs) {
  return std::ranges::all_of(outputs, [](const Tensor &t) { return !t.has_data() || t.count() == 0; });
}

}  // namespace qtn::ops
