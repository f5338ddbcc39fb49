// SPDX-License-Identifier: Apache-2.0
// A convolution with few filters leaves most of a vector of outputs empty. Each pixel of x by the taps of all filters is
// one product whose vectors are full; then what several pixels give one output is added up.
#pragma once

#include "runtime/lower/lowering.hpp"

namespace qtn::runtime {

/// A convolution in one of its two directions.
struct Overlap {
  ops::Window window;  ///< over images, laid down, from y to x, as that of a transposed convolution
  Tensor weight;       ///< float32 [channels][filters][taps]; where it is not transposed [filters][channels][taps]
  bool is_transposed;

  static Overlap of_transposed(const ops::Window &window, const Tensor &weight);
  /// One of stride 1.
  static Overlap of_ordinary(const ops::Window &window, const Tensor &weight);

  /// Whether this takes less time than convolutions that multiply each pixel of x by so many vectors of filters.
  bool is_faster_than(double vectors) const;
  /// Adds its steps, from one image without gaps to another.
  void add(Lowering &l, SlotId x, SlotId y, const Tensor &bias, const PackCache &cache) const;

  std::int64_t channels() const { return weight.dim(is_transposed ? 0 : 1); }
  std::int64_t filters() const { return weight.dim(is_transposed ? 1 : 0); }
};

}  // namespace qtn::runtime
