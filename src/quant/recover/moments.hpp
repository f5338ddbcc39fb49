// SPDX-License-Identifier: Apache-2.0
// What the corrections of a layer need to know of its data, whatever the number of samples.
#pragma once

#include <vector>

#include "quant/recover/layer.hpp"

namespace qtn::quant {

/// The moments of one group of a layer: x as the float model has it, q as the quantized one, y = W x.
struct Moments {
  /// Means over rows that may be taken to be independent of those of other parts: one part for each sample; of a single
  /// sample several.
  struct Part {
    std::vector<double> x, q;  ///< [depth]
  };

  std::vector<Part> parts;
  double significant;  ///< how many times the square of its standard error the square of a mean has to exceed to count
  std::int64_t rows = 0;
  std::vector<float> qq;  ///< sums over rows [depth][depth], if products are wanted
  std::vector<float> qy;  ///< the same, [depth][outputs]

  /// Adds rows of one sample in `count` parts, or in as many as there are rows. `weight` [outputs][depth] are those of
  /// the group.
  void add(const Layer &layer, const float *weight, const std::vector<float> &x_rows, const std::vector<float> &q_rows,
           std::int64_t count, bool products);
};

/// For each output of the group the mean of w x - w' q, as far as the parts agree on it: shrunk by what of its square
/// their scatter explains (James and Stein 1961), so that few samples do not correct what they do not show.
std::vector<double> mean_errors(const Layer &layer, const Moments &moments, const float *weight,
                                const float *quantized_weight);

}  // namespace qtn::quant
