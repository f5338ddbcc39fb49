// SPDX-License-Identifier: Apache-2.0
// What the operands and attributes of GroupQueryAttention say of its sizes.
#pragma once

#include "ops/common/cache_rows.hpp"
#include "ops/op.hpp"

namespace qtn::ops {

/// Sizes of a call, and what its attributes say of caches and scores.
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
    kSink,
    kKeyScale,
    kValueScale,
    kQueryNorm,
    kKeyNorm
  };
  enum Output : std::size_t { kY, kPresentKey, kPresentValue, kScores };

  explicit GroupedForm(const Call &call);

  /// An element of int32 or int64.
  static std::int64_t int_at(const Tensor &t, std::int64_t i);
  std::int64_t total(const Call &call) const;  ///< total_sequence_length
  /// Places of a sequence that were there before. All sequences begin in this call, or none.
  std::int64_t before(const Call &call, std::int64_t batch) const;
  /// Places of the caches that come out. Unless they slide, the total length must be known.
  std::int64_t room(const Call &call) const;
  /// Whether all that queries see are floats that the caches hold afterwards.
  bool attends_to_caches() const { return bits == 0 && (!slides || places == 1); }
  /// How many places of keys and values there are for queries to see.
  std::int64_t keys(const Call &call) const;
  /// How many of the first `total` places of a sequence are in its cache: the last ones.
  std::int64_t resident(std::int64_t total) const;

  qdtype cache_dtype() const { return bits == 0 ? QTN_FLOAT32 : bits == 8 ? QTN_INT8 : QTN_UINT8; }
  Shape cache_shape(std::int64_t rows) const { return {batches, kv_heads, rows, bits == 4 ? features / 2 : features}; }
  Shape keys_shape(const Call &call) const { return {batches, kv_heads, keys(call), features}; }
  /// Those of keys where i is 0, and of values where it is 1.
  CacheRows rows(const Call &call, std::size_t i) const { return {features, bits, call.in(kKeyScale + i)}; }

  double scale, softcap;  ///< softcap 0: none
  std::int64_t window;    ///< how many places a query sees, its own among them; 0: all
  bool causal, smooth;    ///< smooth: a score of 0 at no key takes its share
  std::int64_t bits;      ///< of an element of the caches; 0: they are floats
  bool by_channel;        ///< integers of the caches have a scale for each feature of each head, not one for all
  bool slides;            ///< caches have a fixed size, and lose the places that no query will see
  std::int64_t heads, kv_heads, batches, places, features, past;
  bool packed;  ///< keys and values lie behind the queries, in one tensor
};

}  // namespace qtn::ops
