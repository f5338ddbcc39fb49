// SPDX-License-Identifier: Apache-2.0
// Convolutions with few outputs leave most of a vector of them empty. Outputs that lie side by side in a row are made
// together, as channels of one pixel: their windows are one that is a little wider, with weights of zero where it is.
#pragma once

#include <functional>

#include "runtime/lower/lowering.hpp"

namespace qtn::runtime {

class Neighbours {
 public:
  /// As many as make the least of a convolution with so many outputs; one where that gains little.
  Neighbours(const ops::Window &window, std::size_t groups, std::size_t outputs);

  std::int64_t count() const { return count_; }
  /// Taps for each output, times the vectors that its filters take.
  double vectors() const;
  /// The window over the pixels that have so many outputs.
  ops::Window window() const;
  LinearWeights weights(const LinearWeights &of_one) const;
  RealWeights weights(const RealWeights &of_one) const;
  /// Weights of one node that make different numbers of neighbours are packed apart.
  PackCache cache(const PackCache &of_node) const;

 private:
  std::int64_t width(std::int64_t count) const;
  std::int64_t cost(std::int64_t count) const;
  template <class T>
  Tensor joined(const Tensor &filters, std::size_t k) const;

  ops::Window one_;
  std::int64_t outputs_, count_ = 1;
};

/// Adds make(to), a convolution whose results are those of y, `count` neighbours as channels of one pixel.
void add_neighbours(Lowering &l, SlotId y, std::int64_t count, const std::function<StepPtr(SlotId to)> &make);

}  // namespace qtn::runtime
