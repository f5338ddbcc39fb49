// SPDX-License-Identifier: Apache-2.0
// What operators that only relabel axes share: Reshape, Flatten, Squeeze, Unsqueeze, Identity.
#pragma once

#include "ops/common/infer.hpp"

namespace qtn::ops {

inline bool always_moves(const Attrs &) { return true; }

/// Elements of x in logical order into y, whatever the strides of both.
inline void copy_in_order(const Tensor &y, const Tensor &x) {
  if (const auto strides = reshape_strides(y.shape(), y.strides(), x.shape()))
    copy_elements(y.view(x.shape(), *strides), x);
  else if (const auto from = reshape_strides(x.shape(), x.strides(), y.shape()))
    copy_elements(y, x.view(y.shape(), *from));
  else
    copy_elements(y, x.to_contiguous().reshaped(y.shape()));
}

/// The run of all these operators.
inline void run_copy(const Call &call, std::span<Tensor> outputs) { copy_in_order(outputs[0], *call.in(0)); }

/// And their gradient.
inline void backward_copy(const Backward &run, std::span<const Tensor> dx) {
  if (dx[0].has_data()) copy_in_order(dx[0], run.dy[0]);
}

/// Moves an attribute of integers to the input that took its place.
inline void ints_to_input(OldNode &node, const char *attr, std::size_t input) {
  if (!node.attrs.has(attr)) return;
  node.constants[input] = Tensor::from_ints(node.attrs.get_ints(attr));
  node.attrs.erase(attr);
}

}  // namespace qtn::ops
