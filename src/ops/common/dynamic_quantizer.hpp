// SPDX-License-Identifier: Apache-2.0
// The grid that a tensor of floats gets from its own values, at the moment it is used.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/attrs.hpp"
#include "core/tensor.hpp"
#include "kernels/grid/grid.hpp"

namespace qtn::ops {

/// What has a scale and a zero point of its own: x, or each row of it, along the last axis.
enum class Granularity { tensor, row };

/// Whose grid a DynamicQuantizeLinear or DynamicQuantizeMatMul gives to x.
struct OwnGrid {
  Numerics numerics = Numerics::onnx;  ///< of PyTorch's only fbgemm and qnnpack, per tensor
  Granularity granularity = Granularity::tensor;

  auto operator<=>(const OwnGrid &) const = default;
};

/// Attributes of theirs that ONNX lacks: they say whose grid x gets. In files a function says it.
inline constexpr const char *kNumericsAttr = "numerics", *kGranularityAttr = "granularity";
inline constexpr AttrSpec kDynamicAttrs[] = {{kNumericsAttr, AttrSpec::kString}, {kGranularityAttr, AttrSpec::kString}};

/// Whether the mean of each row of b of DynamicMatMul is taken off it first. That changes all elements of a row of the
/// product by the same number, of which Softmax takes no notice, and leaves b the bits that its elements differ in.
inline constexpr const char *kCenteredAttr = "centered";

/// Whether functions say in files what the attribute says.
bool is_own_attr(std::string_view name);

/// What the attributes say: onnx per tensor unless they do. Throws QTN_EINVAL and QTN_EUNSUPPORTED on what does not
/// exist; `who` begins the message.
OwnGrid own_grid(const char *who, const Attrs &attrs);
void set_own_grid(Attrs &attrs, const OwnGrid &grid);

/// "tensor" or "row". Throws QTN_EINVAL on other names.
Granularity parse_granularity(const std::string &name);

/// Scale and zero point of uint8 for floats: ATen's ChooseQuantizationParams, over 7 bits under fbgemm
/// numerics and 8 under qnnpack; ONNX DynamicQuantizeLinear under all others. Throws QTN_EINVAL on NaN and infinity;
/// `who` begins the message.
ScaleZero dynamic_grid(const char *who, std::span<const float> x, Numerics numerics);

/// The same under onnx numerics for a row of floats with this range; the scale is NaN where it is not finite.
ScaleZero dynamic_row_grid(const kernels::FloatRange &range);

/// The message for such rows and tensors.
[[noreturn]] void fail_without_scale(const char *who);

/// The first as a quantizer of contiguous floats.
QuantizerPtr dynamic_quantizer(const char *who, const Tensor &x, Numerics numerics);

/// A uint8 or int8 quantizer for contiguous floats from their own range: as above under fbgemm, qnnpack and onnx
/// numerics, over 7 bits where the options say so and qnnpack does not refuse; else as choose_quantizer() of that
/// range, symmetric under nvidia. Throws QTN_EINVAL on NaN and infinity.
QuantizerPtr choose_dynamic(const char *who, qdtype dtype, const Tensor &x, const ChooseOptions &options);

}  // namespace qtn::ops
