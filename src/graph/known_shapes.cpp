// SPDX-License-Identifier: Apache-2.0
#include "graph/known_shapes.hpp"

#include "base/error.hpp"

namespace qtn::graph {

KnownShapes::KnownShapes(const Graph &g) {
  const auto inputs = declared_input_types(g, 1);
  if (!inputs) return;
  try {
    types_ = infer_partly(g, *inputs).types;
  } catch (const Error &) {
    // A batch of one may not suit the graph.
  }
}

}  // namespace qtn::graph
