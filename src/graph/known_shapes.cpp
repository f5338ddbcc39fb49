// SPDX-License-Identifier: Apache-2.0
#include "graph/known_shapes.hpp"

#include "base/error.hpp"

namespace qtn::graph {

KnownShapes::KnownShapes(const Graph &g, std::int64_t batch) {
  const auto inputs = declared_input_types(g, batch);
  if (!inputs) return;
  try {
    types_ = infer_partly(g, *inputs).types;
  } catch (const Error &) {
    // Such a batch may not suit the graph.
  }
}

std::vector<KnownShapes> shapes_of_batches(const Graph &g) {
  constexpr std::int64_t kMore = 7;  // which is no other dimension's length by chance
  std::vector<KnownShapes> shapes{KnownShapes(g)};
  if (has_open_dimension(g)) shapes.emplace_back(g, kMore);
  return shapes;
}

}  // namespace qtn::graph
