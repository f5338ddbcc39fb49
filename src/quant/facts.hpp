// SPDX-License-Identifier: Apache-2.0
// What is known of a float graph's values before any data.
#pragma once

#include <vector>

#include "graph/graph.hpp"

namespace qtn::quant {

struct Facts {
  explicit Facts(const graph::Graph &g);

  graph::Uses uses;
  std::vector<qdtype> dtype;       ///< by value id
  std::vector<std::int64_t> rank;  ///< by value id; -1: unknown

  bool is_float(graph::ValueId v) const { return dtype[static_cast<std::size_t>(v)] == QTN_FLOAT32; }
  std::int64_t rank_of(graph::ValueId v) const { return rank[static_cast<std::size_t>(v)]; }
};

/// Throws QTN_EUNSUPPORTED "<who>: the model is quantized already" where a value or a product is.
void require_float(const graph::Graph &g, const char *who);

/// A float32 value that is computed, not stored.
inline bool is_activation(const graph::Graph &g, const Facts &facts, graph::ValueId v) {
  return v != graph::kNoValue && !g.value(v).is_constant() && facts.is_float(v);
}

/// The constant's tensor where it is float32, else nullptr.
inline const Tensor *float_constant(const graph::Graph &g, graph::ValueId v) {
  if (v == graph::kNoValue || !g.value(v).is_constant()) return nullptr;
  const Tensor &t = g.value(v).constant;
  return t.dtype() == QTN_FLOAT32 && !t.quantized() ? &t : nullptr;
}

/// Input i, or kNoValue where the node has none.
inline graph::ValueId input_of(const graph::Node &node, std::size_t i) {
  return i < node.inputs.size() ? node.inputs[i] : graph::kNoValue;
}

}  // namespace qtn::quant
