// SPDX-License-Identifier: Apache-2.0
// What GroupQueryAttention does before it attends: it turns queries and keys by the angles of their places, and puts
// keys and values into their caches.
#pragma once

#include "ops/op.hpp"

namespace qtn::ops {

/// Sizes of a call.
struct GroupedForm {
  enum Input : std::size_t {
    kQuery,
    kKey,
    kValue,
    kPastKey,
    kPastValue,
    kLengths,
    kTotal,
    kCosines,
    kSines,
    kPlaces,
    kAdded,
    kSink
  };

  explicit GroupedForm(const Call &call);

  /// Places of the caches that come out, which must be known.
  std::int64_t room(const Call &call) const;

  std::int64_t heads, kv_heads, batches, places, features, past;
  bool packed;  ///< keys and values lie behind the queries, in one tensor
};

/// Outputs; contiguous, float32 except the ends.
struct GroupedQueries {
  Tensor queries;       ///< [batch][head][place][feature]
  Tensor keys, values;  ///< [batch][kv head][room][feature]; 0 behind the end
  Tensor ends;          ///< int64 [batch]: places of each sequence that are filled
};

/// Throws QTN_EINVAL where lengths or positions are out of range.
void group_queries(const Call &call, const GroupedQueries &to);

}  // namespace qtn::ops
