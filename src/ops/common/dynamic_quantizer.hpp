// SPDX-License-Identifier: Apache-2.0
// The grid that a tensor of floats gets from its own values, at the moment it is used.
#pragma once

#include "core/attrs.hpp"
#include "core/tensor.hpp"

namespace qtn::ops {

/// An attribute of DynamicQuantizeLinear and DynamicQuantizeMatMul that ONNX lacks: whose grid x gets. In files a
/// function says it.
inline constexpr const char *kNumericsAttr = "numerics";
inline constexpr AttrSpec kDynamicAttrs[] = {{kNumericsAttr, AttrSpec::kString}};

/// What they are given, onnx unless they are. Throws QTN_EINVAL and QTN_EUNSUPPORTED on other names than onnx, fbgemm
/// and qnnpack; `who` begins the message.
Numerics dynamic_numerics(const char *who, const Attrs &attrs);

/// Scale and zero point of uint8 for contiguous floats: ATen's ChooseQuantizationParams, over 7 bits under fbgemm
/// numerics and 8 under qnnpack; ONNX DynamicQuantizeLinear under all others. Throws QTN_EINVAL on NaN and infinity;
/// `who` begins the message.
ScaleZero dynamic_grid(const char *who, const Tensor &x, Numerics numerics);

/// The same as a quantizer.
QuantizerPtr dynamic_quantizer(const char *who, const Tensor &x, Numerics numerics);

/// A uint8 or int8 quantizer for contiguous floats from their own range: as above under fbgemm, qnnpack and onnx
/// numerics, over 7 bits where the options say so and qnnpack does not refuse; else as choose_quantizer() of that
/// range, symmetric under nvidia. Throws QTN_EINVAL on NaN and infinity.
QuantizerPtr choose_dynamic(const char *who, qdtype dtype, const Tensor &x, const ChooseOptions &options);

}  // namespace qtn::ops
