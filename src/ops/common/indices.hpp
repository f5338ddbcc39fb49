// SPDX-License-Identifier: Apache-2.0
// Indices that a tensor holds, which may be anything.
#pragma once

#include <cstring>
#include <vector>

#include "ops/common/infer.hpp"

namespace qtn::ops {

inline void require_indices(const char *op, const Tensor &indices) {
  require_dtype(op, "indices", indices, {QTN_INT64, QTN_INT32});
}

[[noreturn]] void fail_index(const char *op, std::int64_t index, const Shape &x, std::size_t axis);

/// One index along an axis of x, counted from the front. Throws QTN_EINVAL where it lies outside.
inline std::int64_t index_within(const char *op, std::int64_t index, const Shape &x, std::size_t axis) {
  if (index < -x[axis] || index >= x[axis]) fail_index(op, index, x, axis);
  return index < 0 ? index + x[axis] : index;
}

/// Whether so many indices, at least one, are one and the same, as those are that a network repeats along an axis.
template <class Index>
bool are_same(const Index *indices, std::int64_t count) {
  return std::memcmp(indices, indices + 1, static_cast<std::size_t>(count - 1) * sizeof(Index)) == 0;
}

/// All of them, in logical order.
std::vector<std::int64_t> indices_within(const char *op, const Tensor &indices, const Shape &x, std::size_t axis);

/// indices [.., k] that name places of the first k axes of x behind `batch` ones: for each tuple the offset of its
/// place in a contiguous x, in elements. Tuples of one batch follow one another.
std::vector<std::int64_t> tuple_offsets(const char *op, const Tensor &indices, const Shape &x, std::size_t batch);

}  // namespace qtn::ops
