// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "ops/common/contiguous.hpp"
#include "ops/common/convert.hpp"

namespace qtn::ops {

/// What stands where nothing is moved to, as the bits of an element of x: the one number `value`, or zero where that is
/// nullptr; of a quantized x on its grid.
inline std::uint64_t fill_bits(const Tensor &x, const Tensor *value) {
  std::uint64_t bits = 0;
  const std::size_t size = dtype_size(x.dtype());
  if (x.quantized()) {
    const std::int64_t code = x.quantizer()->quantize(value ? static_cast<float>(item(*value)) : 0.0f);
    std::memcpy(&bits, &code, size);
  } else if (value && value->dtype() == x.dtype()) {
    std::memcpy(&bits, value->data(), size);
  } else if (value) {
    dispatch(x.dtype(), [&](auto zero) {
      const auto element = convert<decltype(zero)>(item(*value));
      std::memcpy(&bits, &element, size);
    });
  }
  return bits;
}

}  // namespace qtn::ops
