// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor.hpp"
#include "quant/observe/kinds.hpp"

namespace qtn::train {

/// Looks at contiguous float32; true for all else.
inline bool all_finite(const Tensor &t) {
  if (t.dtype() != QTN_FLOAT32 || !t.has_data() || t.count() == 0) return true;
  return quant::extent_of(t.as<const float>(), static_cast<std::size_t>(t.count())).finite;
}

}  // namespace qtn::train
