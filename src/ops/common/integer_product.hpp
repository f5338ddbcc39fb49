// SPDX-License-Identifier: Apache-2.0
// What Conv, ConvTranspose, Gemm and MatMul of quantized operands share around their sums. Sums run in double, which
// holds every one exactly.
#pragma once

#include "base/counted.hpp"
#include "ops/common/requantization.hpp"

namespace qtn::ops {

/// Whether sum (x - zx)(w - zw) + bias has the integer meaning: x 8-bit under one scale, w 8-bit or 4-bit under one
/// scale or one for each index of its output axis, the bias one number for each output channel, the output float32,
/// 8-bit under one scale, or plain int32. Each of `groups` has as many output channels as that axis.
bool is_integer_product(const Tensor &x, const Tensor &w, std::size_t output_axis, const Tensor *bias,
                        const Tensor &output, std::int64_t groups = 1);

/// w - zero_point as doubles, with the zero point of each channel.
CountedVector<double> centered_doubles(const Tensor &w, std::size_t output_axis);

/// Rounds sums laid out [outer][channels][inner] into the output. A plain int32 output takes the sums themselves, which
/// must fit; there is no bias then.
void store_products(const Tensor &output, std::span<const double> sums, std::size_t inner, const Quantizer &x,
                    const Quantizer &w, const Tensor *bias, std::size_t channels, const Clamp *clamp);

}  // namespace qtn::ops
