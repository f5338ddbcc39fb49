// SPDX-License-Identifier: Apache-2.0
// How far a quantized tensor is from the float one.
#pragma once

#include "core/tensor.hpp"

namespace qtn::quant {

/// Sums over the elements of pairs of tensors.
struct Noise {
  double signal = 0, noise = 0, product = 0, power = 0;

  /// Where shapes depend on data, those of the quantized tensor can be others: then all of both is noise.
  void add(const Tensor &want, const Tensor &got);
  void add(const Noise &other);

  /// Signal to quantization noise in dB; infinite where there is no noise, 0 where there is neither.
  double sqnr_db() const;
  double cosine() const;  ///< 1 where both are zero

  /// Part of the signal that is lost.
  double relative() const { return signal > 0 ? noise / signal : noise > 0 ? 1 : 0; }

 private:
  void add_all(const Tensor &want, const Tensor &got);
};

}  // namespace qtn::quant
