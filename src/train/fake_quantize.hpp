// SPDX-License-Identifier: Apache-2.0
// Fake quantization of tensors and its gradients: what a network in training sees of a grid. Results do not depend on
// the number of threads; sums are formed over stretches of a fixed length, in order.
#pragma once

#include <span>
#include <vector>

#include "base/scratch.hpp"
#include "core/tensor.hpp"

namespace qtn::train {

/// The grids of a tensor in memory of the caller, which may change them at every step: one for all, or one for each
/// index along an axis.
struct Grids {
  std::span<const float> scales;  ///< or their inverses
  std::span<const std::int32_t> zero_points;
  std::int32_t lo, hi;  ///< within the 16 bits of int16 or uint16; zero points lie between them
  Rounding rounding;
  bool inverses = false;  ///< of Rounding::reciprocal: NVIDIA's toolkit multiplies and divides by the inverse
  std::size_t axis = 0;   ///< of several
};

/// Grids as a quantizer has them.
class QuantizerGrids {
 public:
  /// Throws QTN_EUNSUPPORTED for what Grids cannot hold: more than 16 bits, float8, blocks. `entry` begins messages.
  QuantizerGrids(const char *entry, const Quantizer &quantizer);

  Grids grids() const { return {scales_, zero_points_, lo_, hi_, rounding_, inverses_, axis_}; }

 private:
  std::vector<float> scales_;
  std::vector<std::int32_t> zero_points_;
  std::int32_t lo_, hi_;
  Rounding rounding_;
  bool inverses_;
  std::size_t axis_;
};

// Tensors of these functions are contiguous, float32, and of one shape. A gradient may be written over the one that is
// read.

/// y = dequantize(quantize(x)), bit for bit.
void fake_quantize(const Tensor &x, const Grids &grids, const Tensor &y);

/// dx = dy where x rounds to an integer from lo to hi, else 0; with inverses 0 also where abs(x) is more than hi /
/// inverse.
void fake_quantize_backward(const Tensor &x, const Grids &grids, const Tensor &dy, const Tensor &dx);

/// The same with the gradients of every scale (not of its inverse) and zero point, without a factor for their size:
/// sums of dy * (y - x) / scale where dx = dy, else of dy * (y / scale) and of -dy * scale. Scratch: 16 bytes for each
/// grid and each 65536 elements.
void learned_backward(const Tensor &x, const Grids &grids, const Tensor &dy, const Tensor &dx,
                      std::span<float> d_scales, std::span<float> d_zero_points, Scratch &scratch);

/// The gradient of y = clamp(x, lo, hi) with learned bounds: dx = dy where lo < x < hi, else 0.
struct ClipGradient {
  float lo, hi;  ///< sums of dy where x <= lo, and where x >= hi
};
ClipGradient clip_backward(const Tensor &x, float lo, float hi, const Tensor &dy, const Tensor &dx, Scratch &scratch);

/// New tensors, of operands of any strides. Throws QTN_EDTYPE unless these are float32, QTN_ESHAPE where shapes or
/// scales do not fit, QTN_EUNSUPPORTED as QuantizerGrids does.
Tensor fake_quantize(const Tensor &x, const QuantizerPtr &quantizer);
Tensor fake_quantize_backward(const Tensor &dy, const Tensor &x, const QuantizerPtr &quantizer);

}  // namespace qtn::train
