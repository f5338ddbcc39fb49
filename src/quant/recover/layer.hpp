// SPDX-License-Identifier: Apache-2.0
// A Conv, Gemm or MatMul with constant weights as matrix products, one for each group: y = W x + b for every row x.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.hpp"

namespace qtn::quant {

struct Layer {
  std::int64_t groups = 1;
  std::int64_t outputs;      ///< of one group
  std::int64_t depth;        ///< products of one output
  bool transposed = false;   ///< weights are stored as [depth][outputs]
  bool convolution = false;  ///< else the rows of x are its last axis

  std::int64_t channels() const { return groups * outputs; }
};

/// nullopt where the node is no such product. `weight` is its shape.
std::optional<Layer> layer_of(const graph::Node &node, const Shape &weight);

/// Whether what the node adds to the products is known, and one number for each channel or nothing.
bool adds_to_channels(const graph::Graph &g, const graph::Node &node, const Layer &layer);

/// The number of element (channel, i) in the weight as it is stored; channel counts over all groups.
inline std::size_t weight_index(const Layer &layer, std::int64_t channel, std::int64_t i) {
  return static_cast<std::size_t>(layer.transposed ? i * layer.outputs + channel : channel * layer.depth + i);
}

/// Up to `limit` rows of x for a group, evenly spread over all that there are: [returned size / depth][depth].
std::vector<float> rows_of(const Layer &layer, const graph::Node &node, const Tensor &x, const Shape &weight,
                           std::int64_t group, std::int64_t limit);

}  // namespace qtn::quant
