// SPDX-License-Identifier: Apache-2.0
// Steps of nodes that know their heads: ONNX's Attention, and MultiHeadAttention and GroupQueryAttention of ONNX
// Runtime.
#pragma once

#include "runtime/steps/steps.hpp"

namespace qtn::runtime {

/// Matrices [batch][head] of rows; columns lie `column` apart.
struct Matrices {
  explicit Matrices(const SlotForm &form)
      : batch(form.strides[0]), head(form.strides[1]), row(form.strides[2]), column(form.strides[3]) {}
  std::ptrdiff_t at(std::int64_t b, std::int64_t h) const { return b * batch + h * head; }

  std::ptrdiff_t batch, head, row, column;
};

/// Softmax of scores of queries and keys, and the mean of values by it. Every edge of floats has axes [batch][head]
/// [place][feature] in memory of any strides; queries share the heads of keys and values.
struct HeadAttention {
  Edge q, k, v, y;  ///< M places of D, T of D, T of E, M of E; elements of a row of q and of y lie side by side
  /// bool: whether a key is seen; float: is added to the scores. Broadcasts over [batch][head][M]; keys behind its last
  /// column are not seen. Elements of a row lie side by side.
  std::optional<Edge> mask{};
  std::optional<Edge> padding{};  ///< the contiguous key_padding_mask of MultiHeadAttention
  float padded = 0;               ///< is added to scores of padding
  SlotId lengths = kNoSlot;  ///< int64 [batch]: how many keys count, the last of them at the place of the last query
  std::int64_t past = 0;     ///< keys before the first query; not where there are lengths
  std::int64_t left = -1, right = -1;  ///< how far a query sees, in keys; -1: to the end. Causal: right is 0
  /// What is too far to the right is hidden by the lowest number: a query that sees nothing else sees all of that, and
  /// not nothing, which gives zeros.
  bool hides_by_number = false;
  float scale = 1, softcap = 0;  ///< softcap 0: none
  /// float [head]: one score more of each query, whose share no key has; `has_sink` without them: 0.
  SlotId sinks = kNoSlot;
  bool has_sink = false;
};
StepPtr make_head_attention(HeadAttention attention, const ops::Clamp &clamp, Isa isa);

/// y = x, or x + bias, for operands [batch][head][place][feature] of any strides, but those of y's rows lie side by
/// side.
/// `bias` is a contiguous slot, whose element `first` is that of the first feature of the first head.
StepPtr make_heads(const Edge &x, const Edge &y, SlotId bias = kNoSlot, std::size_t first = 0);

/// What GroupQueryAttention makes of its operands before it attends: queries with rotary positions [batch][head][place]
/// [feature], keys and values that these see, the end of each sequence in them, int64, and both caches, which may be
/// these keys and values.
struct GroupedHeads {
  SlotId queries, keys, values, ends, present_keys, present_values;
};
StepPtr make_grouped_heads(const graph::Node &node, std::vector<SlotId> inputs, const GroupedHeads &to);

}  // namespace qtn::runtime
