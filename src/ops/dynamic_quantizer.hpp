// SPDX-License-Identifier: Apache-2.0
// The grid that a tensor of floats gets from its own values, at the moment it is used.
#pragma once

#include "core/tensor.hpp"

namespace qtn::ops {

/// A uint8 quantizer for contiguous floats: FBGEMM's ChooseQuantizationParams, over 7 bits under fbgemm numerics and 8
/// under qnnpack; ONNX DynamicQuantizeLinear under all others. Throws QTN_EINVAL on NaN and infinity; `who` begins the
/// message.
QuantizerPtr dynamic_quantizer(const char *who, const Tensor &x, Numerics numerics);

}  // namespace qtn::ops
