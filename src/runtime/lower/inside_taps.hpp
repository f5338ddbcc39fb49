// SPDX-License-Identifier: Apache-2.0
// Convolutions whose outer taps meet borders only, as eight of the nine of 3x3 do where an image is one pixel. They are
// done by the taps that are left.
#pragma once

#include "runtime/lower/lowering.hpp"

namespace qtn::runtime {

class InsideTaps {
 public:
  explicit InsideTaps(const ops::Window &window);

  const ops::Window &window() const { return inside_; }
  /// Borders have the zero point of x.
  LinearWeights weights(const LinearWeights &all, std::int32_t zero_point) const;
  RealWeights weights(const RealWeights &all) const;
  /// Weights of one node for images of different sizes are packed apart.
  PackCache cache(const PackCache &of_node) const;

 private:
  bool are_all() const { return inside_.kernel == all_.kernel; }
  template <class T>
  Tensor inside(const Tensor &filters, std::int64_t channels) const;

  ops::Window all_, inside_;
  ops::Window::Dims first_{};  ///< tap of the whole window
};

}  // namespace qtn::runtime
