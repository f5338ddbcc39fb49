// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.hpp"

namespace qtn::graph {

/// What a graph's shapes are for a batch of that size, as far as they are known before anything runs.
class KnownShapes {
 public:
  explicit KnownShapes(const Graph &g, std::int64_t batch = 1);

  /// nullptr where the shape is not known.
  const Shape *of(ValueId v) const {
    const auto i = static_cast<std::size_t>(v);
    return types_.empty() || !types_[i] ? nullptr : &types_[i]->shape;
  }

 private:
  std::vector<std::optional<ops::TensorType>> types_;
};

/// Those of one batch where none is open, else of two: what holds for both holds for all.
std::vector<KnownShapes> shapes_of_batches(const Graph &g);

}  // namespace qtn::graph
