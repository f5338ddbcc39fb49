// SPDX-License-Identifier: Apache-2.0
// Indices that a tensor holds, which may be anything.
#pragma once

#include <vector>

#include "ops/common/infer.hpp"

namespace qtn::ops {

inline void require_indices(const char *op, const Tensor &indices) {
  require_dtype(op, "indices", indices, {QTN_INT64, QTN_INT32});
}

/// One index along an axis of x, counted from the front. Throws QTN_EINVAL where it lies outside.
std::int64_t index_within(const char *op, std::int64_t index, const Shape &x, std::size_t axis);

/// All of them, in logical order.
std::vector<std::int64_t> indices_within(const char *op, const Tensor &indices, const Shape &x, std::size_t axis);

/// indices [.., k] that name places of the first k axes of x behind `batch` ones: for each tuple the offset of its
/// place in a contiguous x, in elements. Tuples of one batch follow one another.
std::vector<std::int64_t> tuple_offsets(const char *op, const Tensor &indices, const Shape &x, std::size_t batch);

}  // namespace qtn::ops
