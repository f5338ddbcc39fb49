// SPDX-License-Identifier: Apache-2.0
// Attention as files have it: a product of queries and keys, arithmetic on its scores, Softmax, and the product with
// values. Together they need no matrix of all queries by all keys.
#pragma once

#include <map>

#include "graph/graph.hpp"

namespace qtn::runtime {

/// values = softmax(terms(factor queries keys)) values
struct AttentionFormula {
  graph::ValueId queries, keys, values;  ///< [..., M, D], [..., D, T] and [..., T, E]
  bool keys_in_rows = false;             ///< keys are [..., T, D]
  /// Keys and values that follow on the others, as those of one token on a cache: then all keys lie in rows.
  graph::ValueId later_keys = graph::kNoValue, later_values = graph::kNoValue;
  /// How many heads of queries share one of keys and values, which then have an axis of length 1 behind that of heads.
  std::int64_t sharing = 1;
  float factor = 1;      ///< by which keys, and then queries as well, are multiplied before they meet
  bool guarded = false;  ///< shares that are not numbers, as those of a query that sees no key, are zeros
  /// Mul, Div, Add, Sub or Where, first things first; each is followed by which of its inputs are the scores. Reshapes
  /// may lie between them, as those of shifted windows do, which leave the matrices of scores and their order.
  std::vector<std::pair<const graph::Node *, std::size_t>> terms;
  /// What reads the result exchanges its axes of heads and queries, and may find it lying so.
  bool by_query = false;
  bool integer = false;   ///< both products are DynamicMatMul
  bool centered = false;  ///< the first of these is
};

/// What lowering has to leave out, and do instead.
struct Attentions {
  std::map<std::size_t, AttentionFormula> formulas;  ///< by the index of the last product
  std::vector<bool> inside;                          ///< by node: is part of a formula that ends later
};

/// Formulas of a graph whose shapes are known, in float32, of which no value but the last is `seen` (by value id).
Attentions find_attentions(const graph::Graph &g, const graph::Inferred &known, const std::vector<bool> &seen);

}  // namespace qtn::runtime
