// SPDX-License-Identifier: Apache-2.0
// Add, Sub and Mul of two 8-bit tensors into a third.
#pragma once

#include "base/counted.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/requantization.hpp"

namespace qtn::ops {

/// output = quantize(f(a - za, b - zb)) where f gives a value already divided by the output scale. `make` returns f
/// from the three quantizers. False where an operand is not 8-bit under one scale.
template <class Make>
bool run_integer_binary(const Call &call, const Tensor &output, const Clamp *clamp, Make &&make) {
  const Tensor &a = *call.in(0), &b = *call.in(1);
  if (!is_quantized_8bit(&a) || !is_quantized_8bit(&b) || !is_quantized_8bit(&output)) return false;
  const auto f = make(*a.quantizer(), *b.quantizer(), *output.quantizer());
  CountedVector<float> scaled(static_cast<std::size_t>(output.count()));
  map_broadcast<std::int32_t, std::int32_t>(centered(a), centered(b), output.shape(), scaled.data(), f);
  store_scaled(output, scaled, clamp);
  return true;
}

}  // namespace qtn::ops
