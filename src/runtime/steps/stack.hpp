// SPDX-License-Identifier: Apache-2.0
// Matrices along the last two axes of a tensor.
#pragma once

#include "runtime/layout.hpp"

namespace qtn::runtime {

/// A stack of matrices [rows][columns] under any strides, repeated over those of the result.
struct Stack {
  Stack(const SlotForm &form, const Shape &batch) {
    const std::size_t rank = form.shape.size();
    const Shape outer(std::span(form.shape).first(rank - 2)), steps(std::span(form.strides).first(rank - 2));
    strides = broadcast_strides(outer, steps, batch);
    row = form.strides[rank - 2];
    column = form.strides[rank - 1];
  }

  std::ptrdiff_t offset(const Shape &batch, std::int64_t i) const {
    std::ptrdiff_t at = 0;
    for (std::size_t axis = batch.size(); axis-- > 0; i /= batch[axis]) at += i % batch[axis] * strides[axis];
    return at;
  }

  Shape strides;
  std::ptrdiff_t row, column;
};

}  // namespace qtn::runtime
