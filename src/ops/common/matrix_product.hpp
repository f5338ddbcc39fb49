// SPDX-License-Identifier: Apache-2.0
// Which matrices a product of two tensors multiplies.
#pragma once

#include "ops/common/infer.hpp"

namespace qtn::ops {

struct MatrixProduct {
  std::int64_t m, n, k;
  Shape a_batch, b_batch, batch;  ///< leading axes, and what they broadcast to
  Shape shape;                    ///< of the result
};

/// As numpy.matmul: a vector on the left is a row, on the right a column, and its axis is gone from the result. Throws
/// QTN_ESHAPE; `who` begins the message.
MatrixProduct matrix_product(const char *who, const Call &call);

/// Calls body(batch, matrix of a, matrix of b) for all batches.
template <class Body>
void for_batches(const MatrixProduct &p, Body &&body) {
  const Shape a_strides = broadcast_strides(p.a_batch, contiguous_strides(p.a_batch), p.batch);
  const Shape b_strides = broadcast_strides(p.b_batch, contiguous_strides(p.b_batch), p.batch);
  for (std::int64_t i = 0; i < element_count(p.batch); ++i) {
    std::int64_t rest = i, a_at = 0, b_at = 0;
    for (std::size_t axis = p.batch.size(); axis-- > 0;) {
      a_at += rest % p.batch[axis] * a_strides[axis];
      b_at += rest % p.batch[axis] * b_strides[axis];
      rest /= p.batch[axis];
    }
    body(i, a_at, b_at);
  }
}

}  // namespace qtn::ops
