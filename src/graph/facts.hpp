// SPDX-License-Identifier: Apache-2.0
// What is known of a float graph's values before any data.
#pragma once

#include <vector>

#include "graph/graph.hpp"

namespace qtn::graph {

struct Facts {
  explicit Facts(const Graph &g);

  Uses uses;
  std::vector<qdtype> dtype;                          ///< by value id
  std::vector<std::int64_t> rank;                     ///< by value id; -1: unknown, or not the same in all runs
  std::vector<std::optional<ops::TensorType>> types;  ///< by value id, where shapes say them; of a batch of one
  bool open = false;  ///< some input has a dimension that the file leaves open, so that other shapes may come

  bool is_float(ValueId v) const { return dtype[static_cast<std::size_t>(v)] == QTN_FLOAT32; }
  std::int64_t rank_of(ValueId v) const { return rank[static_cast<std::size_t>(v)]; }
};

/// Throws QTN_EUNSUPPORTED "<who>: the model is quantized already" where a value or a product is.
void require_float(const Graph &g, const char *who);

/// A float32 value that is computed, not stored.
inline bool is_activation(const Graph &g, const Facts &facts, ValueId v) {
  return v != kNoValue && !g.value(v).is_constant() && facts.is_float(v);
}

/// The constant's tensor where it is float32, else nullptr.
inline const Tensor *float_constant(const Graph &g, ValueId v) {
  if (v == kNoValue || !g.value(v).is_constant()) return nullptr;
  const Tensor &t = g.value(v).constant;
  return t.dtype() == QTN_FLOAT32 && !t.quantized() ? &t : nullptr;
}

/// Input i, or kNoValue where the node has none.
inline ValueId input_of(const Node &node, std::size_t i) { return i < node.inputs.size() ? node.inputs[i] : kNoValue; }

}  // namespace qtn::graph
