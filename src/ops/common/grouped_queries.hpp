// SPDX-License-Identifier: Apache-2.0
// What GroupQueryAttention does before it attends: it turns queries and keys by the angles of their places, and puts
// keys and values into their caches.
#pragma once

#include "ops/common/grouped_form.hpp"

namespace qtn::ops {

/// Outputs; contiguous, float32 where nothing else is said.
struct GroupedQueries {
  Tensor queries;       ///< [batch][head][place][feature]
  Tensor keys, values;  ///< [batch][kv head][key][feature], as far as the end; the caches where attends_to_caches()
  Tensor ends;          ///< int64 [batch]: keys of each sequence, of which the last is at the place of the last query
  Tensor present_keys, present_values;  ///< the caches, zeros behind the resident places
};

/// Throws QTN_EINVAL where lengths or positions are out of range, and QTN_ESHAPE where attention_bias has not the
/// columns of total_sequence_length.
void group_queries(const Call &call, const GroupedQueries &to);

}  // namespace qtn::ops
