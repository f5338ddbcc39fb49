// SPDX-License-Identifier: Apache-2.0
// What the corrections of a layer need to know of its data, whatever the number of samples.
#pragma once

#include <vector>

#include "quant/recover/layer.hpp"

namespace qtn::quant {

/// Sums over rows of one group of a layer: x as the float model has it, q as the quantized one, y = W x.
struct Moments {
  std::int64_t rows = 0;
  std::vector<double> x, q;  ///< [depth]
  std::vector<float> qq;     ///< [depth][depth], if products are wanted
  std::vector<float> qy;     ///< [depth][outputs], if products are wanted

  /// Adds rows of one sample. `weight` [outputs][depth] are those of the group.
  void add(const Layer &layer, const std::vector<float> &weight, const std::vector<float> &x_rows,
           const std::vector<float> &q_rows, bool products);
};

}  // namespace qtn::quant
