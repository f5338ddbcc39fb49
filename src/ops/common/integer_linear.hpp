// SPDX-License-Identifier: Apache-2.0
// Products with 8-bit weights as they lie in memory, [out][in]. Nothing is kept between calls: the owner of a weight
// may change it at any time.
#pragma once

#include <optional>
#include <span>

#include "core/tensor.hpp"
#include "kernels/dot/dot.hpp"

namespace qtn::ops {

/// Contiguous rows x [m, in] times a quantized weight [out, in] transposed, plus a float bias [out] (nullptr: none).
/// `grid` is the quantizer of x, or the one that its floats are quantized by first. The result has the bits that Gemm
/// gives; nothing where the kernels do not apply: other types than 8-bit ones, or sums that may leave int32.
std::optional<Tensor> integer_linear(const Tensor &x, const Quantizer &grid, const Tensor &weight, const Tensor *bias,
                                     const QuantizerPtr &quantizer);

/// How floats come onto a grid of 8 bits, in the terms of base/rounding.hpp; `zero` as an integer of that grid's type.
struct ByteGrid {
  Rounding rounding;
  float factor;
  std::int32_t zero;
};
void quantize_8bit(std::span<const float> x, const ByteGrid &grid, bool is_signed, void *q);

/// All columns of a product, in tasks that do not depend on the number of threads.
void multiply_columns(const kernels::DotKernel &kernel, const kernels::DotArgs &args);

}  // namespace qtn::ops
